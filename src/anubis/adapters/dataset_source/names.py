"""Names of files that come from elsewhere: nothing may be written outside of its folder."""

from __future__ import annotations

from collections.abc import Iterable

from anubis.domain.errors import DatasetInvalid

MOST_OBJECTS = 1_000_000
"""In one dataset. A listing of so many takes minutes and some hundred MB of memory."""
LONGEST_SEGMENT = 255
LONGEST_NAME = 4000
"""Bytes, a little below what Linux allows: the folder of the cache comes in front."""


def check_name(name: str, place: str) -> None:
    """Raise DatasetInvalid unless ``name`` is a path below a folder, with slashes."""
    segments = name.split("/")
    harmless = not any(segment in {"", ".", ".."} for segment in segments)
    printable = not any(ord(character) < 32 or ord(character) == 127 for character in name)
    short = all(len(_encoded(segment)) <= LONGEST_SEGMENT for segment in segments)
    if not (harmless and printable and short and len(_encoded(name)) <= LONGEST_NAME):
        raise DatasetInvalid(
            f"{place}: found the name {name[:200]!r}, expected a path that stays below a folder"
        )


def check_count(count: int, place: str) -> None:
    """Raise DatasetInvalid if a dataset has too many files."""
    if count > MOST_OBJECTS:
        raise DatasetInvalid(
            f"{place}: found more than {MOST_OBJECTS:,} objects, expected fewer: "
            f"name a folder deeper down, or put them into an archive and unpack it"
        )


def folders_of(names: Iterable[str]) -> set[str]:
    """All folders that these files need."""
    folders: set[str] = set()
    for name in names:
        parent = name.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    return folders


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
