"""Objects behind ``http:`` and ``https:`` URLs.

One request tells all that we must know: a GET of the first byte alone. Its answer has the size, the
version, and whether the server knows ranges; a HEAD is often refused where a GET is signed.

Bulk data is read by ``http.client`` in threads: over loopback httpx moved 0.4 GB/s where this moves
1.8, since every 64 kB of httpx pass through several layers of Python.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import urllib.parse
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from anubis.domain.dataset import refuse_secrets, shown
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import Item, Listing

if TYPE_CHECKING:
    from anubis.adapters.dataset_source.http_exchange import Answer, Exchange

T = TypeVar("T")

PATIENCE: Final = timedelta(seconds=30)
"""How long a server may be silent at any one moment."""

MOST_THREADS: Final = 32
"""Transfers that can wait for bytes at the same time; those beyond wait for a thread."""

_LATER: Final = frozenset({408, 425, 429})
"""Refusals that pass. All of 500 and above do too."""


class HttpSource:
    """Reads what servers of the web give, with credentials from ``~/.netrc`` or ``NETRC`` only."""

    def __init__(self, *, patience: timedelta = PATIENCE) -> None:
        self._patience = patience
        # Of its own: threads that wait for slow servers must not take those that others need.
        self._threads = concurrent.futures.ThreadPoolExecutor(MOST_THREADS, "http-source")

    @property
    def schemes(self) -> frozenset[str]:
        """Both, also when a redirect leads from one to the other."""
        return frozenset({"http", "https"})

    async def list(self, uri: str) -> Listing:
        """See the port."""
        refuse_secrets(uri)
        exchange = self._exchange(uri)
        try:
            answer = await self._call(functools.partial(exchange.open, uri, 0, 1))
        finally:
            exchange.abort()
        _demand_content(uri, answer)
        item = Item(
            name=_file_name(uri),
            address=answer.url,
            size_bytes=answer.total_bytes,
            version=_version(answer),
        )
        return Listing(items=(item,), is_directory=False, has_ranges=answer.is_partial)

    async def read(
        self, item: Item, start: int, end: int | None
    ) -> AsyncIterator[bytes | memoryview]:
        """See the port."""
        exchange = self._exchange(item.address)
        expected = None if end is None else end - start
        received = 0
        try:
            answer = await self._call(functools.partial(exchange.open, item.address, start, end))
            _demand_same(item, answer, is_range=not (start == 0 and end is None))
            while piece := await self._call(exchange.piece):
                received += len(piece)
                yield piece
        finally:
            exchange.abort()
        expected = answer.body_bytes if expected is None else expected
        if expected is not None and received != expected:
            raise SourceUnavailable(
                f"{shown(item.address)}: found {received:,} bytes, expected {expected:,}: "
                "the connection was cut, or the content changed"
            )

    def _exchange(self, uri: str) -> Exchange:
        # Imported where data is fetched: with TLS it costs more than most commands do in all.
        from anubis.adapters.dataset_source.http_exchange import Exchange

        return Exchange(shown(uri), self._patience)

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _file_name(uri: str) -> str:
    """The last part of the path; programs look at its ending."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(uri).path)
    return path.rpartition("/")[2].replace("\0", "") or "data"


def _version(answer: Answer) -> str:
    """All that changes with the content; empty if only the size would tell."""
    if not answer.etag and not answer.modified:
        return ""
    return f"{answer.etag} {answer.modified} {answer.total_bytes}"


def _demand_content(uri: str, answer: Answer) -> None:
    if answer.status in {200, 206} or answer.is_empty:
        _refuse_encoding(uri, answer)
        return
    said = f"{shown(uri)}: the server answered {answer.status} {answer.reason}".rstrip()
    if answer.status in _LATER or answer.status >= 500:
        raise SourceUnavailable(said)
    if answer.status in {401, 403}:
        said += "; credentials are taken from ~/.netrc, or the file that NETRC names"
    raise DatasetInvalid(said)


def _refuse_encoding(uri: str, answer: Answer) -> None:
    if answer.encoding not in {"", "identity"}:
        raise DatasetInvalid(
            f"{shown(uri)}: found content encoded as {answer.encoding!r}, which nobody asked for"
        )


def _demand_same(item: Item, answer: Answer, *, is_range: bool) -> None:
    """Whatever is not what the listing promised is another content, or a server in trouble."""
    place = shown(item.address)
    wanted = 206 if is_range else 200
    if answer.status != wanted and not (answer.is_empty and item.size_bytes == 0):
        # Also for what looks final, such as 403: the listing was answered a moment ago, and where
        # a signature ran out, the next listing brings a new one.
        raise SourceUnavailable(
            f"{place}: the server answered {answer.status} {answer.reason}, expected {wanted}"
        )
    _refuse_encoding(item.address, answer)
    if item.version and _version(answer) != item.version:
        raise SourceUnavailable(f"{place}: the content was changed while it was being fetched")
    if item.size_bytes is not None and answer.total_bytes not in {None, item.size_bytes}:
        raise SourceUnavailable(
            f"{place}: found {answer.total_bytes:,} bytes, expected {item.size_bytes:,}"
        )
