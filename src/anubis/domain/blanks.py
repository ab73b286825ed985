"""What a plan leaves open until the run has its place: a folder, a host name, a port.

A blank stands in a command, a variable, a file or the source of a mount, between two NULs, which no
command line can hold. Folders are filled in by whoever brings what the run needs; host names and
ports by the engine, which alone knows where its units are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MARK: Final = "\0"

SCRIPTS: Final = "\0scripts\0"
"""The folder with the code that was submitted beside the descriptor."""

FILES: Final = "\0files\0"
"""The folder with ``Plan.files`` and, where a plan needs them, keys made for this run."""


def data(index: int) -> str:
    """The path of what ``Plan.fetches[index]`` brought."""
    return f"\0data {index}\0"


def host(unit: str) -> str:
    """The name or address under which other units reach this one."""
    return f"\0host {unit}\0"


def port(unit: str, number: int) -> str:
    """The port that a unit really has for the one it declares."""
    return f"\0port {unit} {number}\0"


def name(blank: str) -> str:
    """What a blank is called in ``filled``'s table: ``data 0`` for ``data(0)``."""
    return blank.strip(_MARK)


def filled(text: str, meanings: Mapping[str, str]) -> str:
    """The text with the blanks that the table knows filled in; others stay."""
    if _MARK not in text:
        return text
    parts = text.split(_MARK)  # every second part is the name of a blank
    return "".join(
        part if number % 2 == 0 else meanings.get(part, f"\0{part}\0")
        for number, part in enumerate(parts)
    )


def shown(text: str) -> str:
    """The text as people read it: ``<port 8080 of server>/v1``."""
    if _MARK not in text:
        return text
    return "".join(
        part if number % 2 == 0 else _described(part)
        for number, part in enumerate(text.split(_MARK))
    )


def _described(blank: str) -> str:
    match blank.split(" "):
        case ["host", unit]:
            return f"<host of {unit}>"
        case ["port", unit, number]:
            return f"<port {number} of {unit}>"
        case _:
            return f"<{blank}>"
