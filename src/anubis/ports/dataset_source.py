"""Read the content behind URIs of certain schemes."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Protocol


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One object behind a URI."""

    name: str  #: path below the URI, with slashes; for a single object its file name
    address: str  #: what ``read`` needs to find it again; of no meaning to others
    size_bytes: int | None  #: None: the source does not tell
    version: str = ""
    """Changes when the content does (an ETag, a time of change); empty: the source does not tell,
    and the content cannot be taken for unchanged."""
    path: str | None = None
    """Where it is on this machine, if it is: whoever fetches may let the file system copy it, and
    then looks himself whether it changed meanwhile. ``read`` works nevertheless."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """All that is behind a URI."""

    items: tuple[Item, ...]
    is_directory: bool  #: whether the URI names a prefix or folder; else there is one item
    has_ranges: bool  #: whether ``read`` can begin in the middle


class DatasetSource(Protocol):
    """A way to fetch. Never changes anything at the source. Safe to use by many at once."""

    @property
    def schemes(self) -> frozenset[str]:
        """Lower-case schemes of the URIs it reads."""
        ...

    async def list(self, uri: str) -> Listing:
        """What is there. Does not transfer content.

        Raises DatasetInvalid for what is not there, may not be read, or makes no sense: trying
        again will not help; SourceUnavailable when the source did not answer.
        """
        ...

    def read(self, item: Item, start: int, end: int | None) -> AsyncIterator[bytes | memoryview]:
        """The bytes from ``start`` up to, not including, ``end`` (None: to the end), in pieces.

        A piece may be gone when the next is asked for: its memory is used again.

        ``start`` is zero where the listing has no ranges. Raises as ``list`` does; also
        SourceUnavailable when the content became shorter, longer or another one since the listing.
        """
        ...
