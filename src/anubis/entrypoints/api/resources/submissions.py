"""Read what is handed in: a descriptor as it is, or in JSON beside what else is wanted."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path
from typing import Final, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from anubis.bootstrap import surroundings
from anubis.bootstrap.application import Submission
from anubis.domain.access import Principal
from anubis.domain.document import Document
from anubis.domain.problem import Problem, Severity
from anubis.entrypoints.api.resources.answering import JSON
from anubis.entrypoints.api.resources.models import runs
from anubis.ports.engine import Capabilities
from anubis.stages.descriptor.reading import MAX_BYTES

Model = TypeVar("Model", bound=BaseModel)

TOML: Final = ("application/toml", "text/plain")

LARGEST_JSON = 6 * MAX_BYTES + 64 * 1024
"""Bytes. In JSON a character may take six."""


SMALL_JSON = 16 * 1024
"""Bytes. Whatever is in it, it is checked within milliseconds."""

MOST_FIELDS = 100
"""Of one body; the largest that we know has six."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HandedIn:
    """A descriptor, what else was asked for, and what its author should know."""

    document: Document
    engine: str | None = None
    priority: int | None = None
    is_wanted_now: bool = False
    warnings: tuple[Problem, ...] = ()

    def by(self, who: Principal, key: str | None) -> Submission:
        """The same as something that the application takes."""
        return Submission(
            document=self.document,
            submitter=who.user,
            environment=surroundings.service_environment(os.environ),
            engine=self.engine,
            priority=self.priority,
            wants_it_now=self.is_wanted_now,
            key=key,
        )


async def read(request: Request, options: runs.SubmissionOptions) -> HandedIn:
    """What a request hands in. Raises HTTPException 413 or 415, or RequestValidationError."""
    must_be_plain(request)
    kind = media_type(request)
    if kind == JSON:
        given = parsed(runs.Submission, await body(request, LARGEST_JSON))
        content = given.descriptor.encode()
        wanted = options.model_copy(update=given.model_dump(exclude_unset=True))
    elif kind in TOML:
        content, wanted = await body(request, MAX_BYTES), options
    else:
        expected = ", ".join((JSON, *TOML))
        raise HTTPException(415, f"Content-Type: found {kind!r}, expected one of: {expected}")
    return await _located(content, wanted)


def must_be_plain(request: Request) -> None:
    """Raise HTTPException 415 for a body that was packed for its way."""
    packing = request.headers.get("Content-Encoding", "identity").strip().lower()
    if packing != "identity":
        raise HTTPException(415, f"Content-Encoding: found {packing!r}, expected none")


def media_type(request: Request) -> str:
    """What the body is, as its sender says."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def _located(content: bytes, wanted: runs.SubmissionOptions) -> HandedIn:
    document, warnings = await located(
        Document(
            name=wanted.name or "descriptor.toml",
            directory=wanted.directory,
            content=content,
            script=wanted.script,
        )
    )
    return HandedIn(
        document=document,
        engine=wanted.engine,
        priority=wanted.priority,
        is_wanted_now=wanted.now,
        warnings=warnings,
    )


async def located(document: Document) -> tuple[Document, tuple[Problem, ...]]:
    """The document, with its folder only if that can be used here, and a warning if not."""
    folder = document.directory
    # In a thread: the folder may be on a file system that does not answer.
    if not folder or await asyncio.to_thread(_can_enter, Path(folder)):
        return document, ()
    last = folder.replace("\\", "/").strip("/").rpartition("/")[2]
    # The folder often names the benchmark; who submitted from above has named it already.
    is_named = document.name.rpartition("/")[0].rpartition("/")[2] == last
    name = document.name if is_named else f"{last}/{document.name}"
    warning = Problem(
        file=document.name,
        line=1,
        column=1,
        field="directory",
        found=repr(folder),
        expected="a folder on the machine of the service",
        hint="the run starts in an empty folder of its own, or in that of its image",
        severity=Severity.WARNING,
    )
    return dataclasses.replace(document, name=name, directory=""), (warning,)


def worth_telling(
    warnings: tuple[Problem, ...], engine: Capabilities | None
) -> tuple[Problem, ...]:
    """Warnings of ``located`` that matter where the run will be: in an image nobody sees the
    folder. None is an engine that was there when the same was submitted first.
    """
    return () if engine is None or engine.needs_image else warnings


def _can_enter(folder: Path) -> bool:
    try:
        return folder.is_absolute() and folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
    except (OSError, ValueError):  # a name that no file system would take
        return False


async def body(request: Request, limit: int) -> bytes:
    """The body, no larger than ``limit``. Raises HTTPException 413."""
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > limit:
            raise HTTPException(413, f"the body is too large: expected at most {limit:,} bytes")
    return bytes(content)


def parsed(model: type[Model], content: bytes) -> Model:
    """JSON that fits the model. Raises RequestValidationError."""
    try:
        if len(content) <= SMALL_JSON:
            return model.model_validate_json(content)
        return model.model_validate(_few_fields(content))
    except ValidationError as error:
        places = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        raise RequestValidationError(places) from None


def _few_fields(content: bytes) -> object:
    """The same JSON, unless it has more fields than anybody needs: each that is unknown would be
    explained, which takes seconds, in which nobody else is answered.
    """
    try:
        value = from_json(content)
    except ValueError as error:
        raise RequestValidationError([_wrong(content, f"JSON ({error})")]) from None
    if isinstance(value, dict) and len(value) > MOST_FIELDS:
        raise RequestValidationError([_wrong(value, f"at most {MOST_FIELDS} fields")])
    return value


def _wrong(found: object, expected: str) -> dict[str, object]:
    return {"loc": ("body",), "input": found, "msg": expected}
