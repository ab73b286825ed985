"""Descriptors are kept once, however many runs and schedules share them.

Their bytes are in a table of their own; their name and folder, which are whatever bytes a file
system allows, are columns of whoever was submitted with them, and so is the name of the archive of
code beside them.
"""

from __future__ import annotations

import sqlite3

from anubis.adapters.sqlite import queries, values
from anubis.domain.document import Document

_SQL = queries.Queries(__file__, "documents.sql")


def keep(connection: sqlite3.Connection, document: Document) -> None:
    """Store the bytes, unless they are there."""
    connection.execute(_SQL["keep"], {"sha": document.sha, "content": document.content})


def forget_lone(connection: sqlite3.Connection, sha: str) -> None:
    """Remove the bytes, unless somebody still has them."""
    connection.execute(_SQL["forget_lone"], {"sha": sha})


def columns(document: Document) -> values.Parameters:
    """Where it came from, as parameters."""
    return {
        "document_name": _bytes(document.name),
        "document_directory": _bytes(document.directory),
        "document_script": values.storable(document.script),
    }


def document(row: values.Row) -> Document:
    """The document of a row of name, directory, script and content."""
    name, directory, script, content = row
    return Document(name=_text(name), directory=_text(directory), script=script, content=content)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")
