"""Files and folders of FTP servers, also over TLS (``ftps``, by AUTH TLS of RFC 4217).

FTP has no conditional reads: the time of change and the size are asked before and after each
transfer. Each reading has a connection of its own, since one connection can do one transfer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from anubis.adapters.dataset_source.names import check_name
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import Item, Listing

if TYPE_CHECKING:
    from anubis.adapters.dataset_source.ftp_session import Entry, Place, Session

T = TypeVar("T")

PATIENCE = timedelta(seconds=60)
"""How long a server may be silent."""
MOST_THREADS = 16
"""Of our own: a slow server shall not take the threads of others."""


class FtpSource:
    """Reads ``ftp://`` and ``ftps://``, as the user of ``~/.netrc`` or as anonymous."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, *, patience: timedelta = PATIENCE
    ) -> None:
        self._environment = environment
        self._seconds = patience.total_seconds()
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="ftp-source")

    @property
    def schemes(self) -> frozenset[str]:
        """Both."""
        return frozenset({"ftp", "ftps"})

    async def list(self, uri: str) -> Listing:
        """A file, or all files below a folder."""
        from anubis.adapters.dataset_source.ftp_session import place_of

        place = place_of(uri)
        with self._session(place) as session:
            return await self._aside(session.do, _listing, session, place)

    async def read(self, item: Item, start: int, end: int | None) -> AsyncIterator[bytes]:
        """A transfer from ``start`` on that we break off at ``end``."""
        from anubis.adapters.dataset_source.ftp_session import PIECE_BYTES, place_of

        place = place_of(item.address)
        stop = end if end is not None else item.size_bytes
        with self._session(place) as session:
            await self._aside(session.do, _begin, session, place, item, start)
            got = start
            while stop is None or got < stop:
                most = PIECE_BYTES if stop is None else stop - got
                piece = await self._aside(session.do, session.piece, most)
                if not piece:
                    break
                got += len(piece)
                yield piece
            await self._aside(session.do, _end, session, place, item, got)
        if stop is not None and got < stop:
            raise SourceUnavailable(
                f"{place}: expected {stop:,} bytes, found {got:,}: the transfer was cut off"
            )

    @contextlib.contextmanager
    def _session(self, place: Place) -> Iterator[Session]:
        """Closed at once when nobody waits for it any more, even in the middle of a wait."""
        # Not at the top: ssl and ftplib cost a command that fetches nothing some milliseconds.
        from anubis.adapters.dataset_source.ftp_session import Session

        session = Session(place, self._environment, self._seconds)
        try:
            yield session
        finally:
            session.abandon()

    async def _aside(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


def _listing(session: Session, place: Place) -> Listing:
    from anubis.adapters.dataset_source.ftp_session import item_of

    session.login()
    folder = place.path.rstrip("/") if place.path != "/" else "/"
    found = session.entry(folder)
    if found is None or (place.path.endswith("/") and not found.is_folder):
        raise DatasetInvalid(f"{place} is not there, or may not be read by this user")
    if not found.is_folder:
        name = folder.rpartition("/")[2]
        check_name(name, str(place))
        item = item_of(place, found, name)
        return Listing(items=(item,), is_directory=False, has_ranges=True)
    items = {}
    for entry in session.files_below(folder):
        name = entry.path.removeprefix(folder).removeprefix("/")
        check_name(name, str(place))
        items[name] = item_of(place, entry, name)
    if not items:
        raise DatasetInvalid(f"{place} is a folder without files")
    ordered = tuple(items[name] for name in sorted(items))
    return Listing(items=ordered, is_directory=True, has_ranges=True)


def _begin(session: Session, place: Place, item: Item, start: int) -> None:
    session.login()
    _demand_unchanged(session.entry(place.path), place, item)
    session.begin(place.path, start)


def _end(session: Session, place: Place, item: Item, got: int) -> None:
    session.finish(is_whole=got == item.size_bytes)
    _demand_unchanged(session.entry(place.path), place, item)


def _demand_unchanged(found: Entry | None, place: Place, item: Item) -> None:
    from anubis.adapters.dataset_source.ftp_session import version_of

    if found is None or found.is_folder:
        raise DatasetInvalid(f"{place} is not there any more")
    if version_of(found) != item.version or found.size_bytes != item.size_bytes:
        raise SourceUnavailable(f"{place} changed while it was read")
