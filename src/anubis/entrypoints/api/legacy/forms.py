"""The multipart body of a submission: a message, and perhaps an archive of scripts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Final

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from anubis.entrypoints.api.legacy.reading import Malformed

EVENT: Final = "submit-event"
SCRIPT: Final = "script"

LARGEST_EVENT: Final = 2 * 1024**2
"""Bytes. A descriptor may have a megabyte, and base64 adds a third."""

_PART: Final = 1024**2
_TOO_LARGE: Final = 413


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """An archive as it came: on the disk already, but for small ones."""

    name: str
    file: UploadFile

    async def parts(self) -> AsyncIterator[bytes]:
        """Its content."""
        while part := await self.file.read(_PART):
            yield part


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """What a client submitted."""

    event: bytes
    script: Upload | None


@contextlib.asynccontextmanager
async def received(request: Request) -> AsyncIterator[Form]:
    """Read the body of a submission. Raises Malformed; its files are gone at the end."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise Malformed(f"found a body of type '{kind}', expected multipart/form-data")
    async with contextlib.AsyncExitStack() as stack:
        try:
            form = await stack.enter_async_context(
                request.form(max_files=2, max_fields=10, max_part_size=LARGEST_EVENT)
            )
        except ClientDisconnect:
            raise Malformed("the body broke off") from None
        except HTTPException as error:
            if error.status_code == _TOO_LARGE:
                raise
            raise Malformed(str(error.detail)) from None
        yield Form(event=await _event(form.get(EVENT)), script=_script(form.get(SCRIPT)))


async def _event(part: UploadFile | str | None) -> bytes:
    if part is None:
        raise Malformed(f"the part '{EVENT}' is missing")
    if isinstance(part, str):
        return part.encode("utf-8", "surrogatepass")
    content = await part.read(LARGEST_EVENT + 1)
    if len(content) > LARGEST_EVENT:
        raise Malformed(f"the part '{EVENT}' has more than {LARGEST_EVENT} bytes")
    return content


def _script(part: UploadFile | str | None) -> Upload | None:
    if part is None:
        return None
    if isinstance(part, str):
        raise Malformed(f"the part '{SCRIPT}' has no filename, expected '<sha1>.tar'")
    return Upload(name=part.filename or "", file=part)
