"""Bring code along with a descriptor, and say what was sent.

Neither the code nor the descriptor of the user is changed.
"""

from __future__ import annotations

from anubis.bootstrap.application import Application
from anubis.domain.document import Document
from anubis.entrypoints.cli import terminal
from anubis.entrypoints.cli.rendering import text


async def beside(application: Application, document: Document, path: str | None) -> Document:
    """The document with the code under ``path``; as it is if there is none."""
    if path is None:
        return document
    # Here and not above: next to no command brings code.
    from anubis.bootstrap import scripting

    document, code = await scripting.brought(application, document, path)
    files = f"{code.files:,} {'file' if code.files == 1 else 'files'} of code"
    sent = "known already" if code.was_there else f"{code.size:,} bytes sent"
    terminal.say(text.printable(f"{path}: {files}, {sent}"))
    return document
