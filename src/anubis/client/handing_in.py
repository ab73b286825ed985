"""Hand in descriptors: the very bytes, and a key by which the service knows a repeated request."""

from __future__ import annotations

import dataclasses
import re
import secrets
from pathlib import Path

from anubis.client import calling
from anubis.client.calling import Call
from anubis.domain.document import Document

KEY = "Idempotency-Key"
TOML = "application/toml"
_LONGEST_NAME = 255


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What wins over the descriptor, and how the request is known again."""

    engine: str | None = None
    priority: int | None = None
    now: bool = False  #: once and now, whatever the descriptor's schedule says
    key: str | None = None
    """The same key never makes a second run. None: one is made up, so that a call that the client
    repeats by itself makes one run; two calls make two."""


def read_document(path: str | Path, *, script: str = "") -> Document:
    """The descriptor in a file, with the folder in which its relative paths start.

    ``script`` names the archive of its code, as ``client.scripts.upload`` gives it.
    """
    file = Path(path)
    return Document(
        name=str(path),
        directory=str(file.absolute().parent),
        content=file.read_bytes(),
        script=script,
    )


def call(path: str, document: Document, wishes: Wishes | None = None) -> Call:
    """A POST of a descriptor that must not be repeated, see ``keyed``."""
    wanted = wishes or Wishes()
    asked = calling.query(
        name=_shown(document.name),
        directory=document.directory,
        script=document.script or None,
        engine=wanted.engine,
        priority=wanted.priority,
        now="true" if wanted.now else None,
    )
    return Call(
        method="POST",
        path=path,
        query=asked,
        headers={"Content-Type": TOML},
        content=document.content,
        is_repeatable=False,
    )


def _shown(name: str) -> str:
    """A name of a file as the service takes it: one line, and not too long."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", name)[-_LONGEST_NAME:]


def keyed(call: Call, key: str | None) -> Call:
    """The same call, safe to repeat."""
    headers = {**call.headers, KEY: key or secrets.token_hex(16)}
    return dataclasses.replace(call, headers=headers, is_repeatable=True)
