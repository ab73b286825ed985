"""Read the descriptor a user named: a file, standard input, or the one of an earlier run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from anubis.bootstrap.application import Application
from anubis.domain.document import Document
from anubis.domain.errors import UserError

_LARGEST = 16 * 1024 * 1024
"""Bytes. No person writes a descriptor of this size; somebody named a data file by mistake."""

_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def find(application: Application, name: str) -> Document:
    """Give the document; a whole run id stands for the descriptor of that run."""
    if _RUN_ID.fullmatch(name) and not Path(name).exists():
        return await application.store.document(await application.store.resolve(name))
    return read(name)


def read(name: str) -> Document:
    """Give the document in a file, or on standard input for ``-``. Raises UserError."""
    if name == "-":
        content = sys.stdin.buffer.read(_LARGEST + 1)
        return _document("<stdin>", Path.cwd(), content)
    path = Path(name)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from error
    return _document(name, path.absolute().parent, content)


def _document(name: str, directory: Path, content: bytes) -> Document:
    if len(content) > _LARGEST:
        raise UserError(f"{name}: larger than {_LARGEST // 1024**2} MiB, that is no descriptor")
    return Document(name=name, directory=str(directory), content=content)
