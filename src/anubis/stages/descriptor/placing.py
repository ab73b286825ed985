"""Say where in its file a field stands, for what is found wrong after the descriptor was read.

What an engine cannot do is told by the field that asks for it, by whoever knows no files.
"""

from __future__ import annotations

import re
from typing import Final

from anubis.domain.document import Document
from anubis.stages.descriptor import reading
from anubis.stages.descriptor.layout import ROOT, Layout, Path

_FIELD: Final = re.compile(r"([a-z_0-9]+(?:\.[a-z_0-9]+|\[\d+\])+)[:,]")
_PART: Final = re.compile(r"[a-z_0-9]+")


def placed(message: str, document: Document) -> str:
    """Put file, line and column before each line that begins with a field.

    The document must be one that was read before. A field that is not written in it is where the
    table is that would have it.
    """
    _, layout = reading.read(document)
    return "\n".join(
        f"{_place(found[1], layout, document.name)}: {line}"
        if (found := _FIELD.match(line))
        else line
        for line in message.split("\n")
    )


def _place(field: str, layout: Layout, name: str) -> str:
    path = _path(field)
    while path != ROOT and path not in layout.spots:
        path = path[:-1]
    return name if path == ROOT else ":".join([name, *map(str, layout.of_value(path))])


def _path(field: str) -> Path:
    """``data.sources[0].src`` as keys and indexes."""
    return tuple(int(part) if part.isdigit() else part for part in _PART.findall(field))
