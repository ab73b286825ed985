"""One thread that makes all changes of this process, many in one transaction (group commit).

The price of a durable change is the wait for the disk. While the writer waits for one commit,
others queue up; it then takes them all and waits once. Each change has a savepoint, so that one
that is refused does not undo its neighbours. Whoever asked hears back only after the commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import pathlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from anubis.adapters.sqlite import connecting
from anubis.domain import errors

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], T]
"""What the writer is asked to do; its result goes back to whoever asked, after the commit."""

LARGEST_GROUP = 256
"""Changes in one transaction. Enough to make the disk wait a small share of each, few enough that
the write lock is given to other processes every few milliseconds."""


@dataclasses.dataclass(kw_only=True, slots=True)
class _Request:
    """One change, who waits for it, and how it went."""

    change: Change[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def deliver(self) -> None:
        if self.future.done():  # cancelled meanwhile: the change is stored all the same
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """The thread and its queue. Starts with the first change: readers never pay for it."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def do(self, change: Change[T]) -> T:
        """Make a change and give its result once it is durable.

        If the caller is cancelled while it waits, the change may or may not be stored.
        """
        if self._closed:
            raise errors.StoreUnavailable(f"the store {self._path} is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"writer of {self._path}")
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._requests.put(_Request(change=change, loop=loop, future=future))
        return await future

    async def close(self) -> None:
        """Finish what was asked for, then end the thread. May be called again."""
        self._closed = True
        if self._thread is not None:
            self._requests.put(None)
            await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        open_for_more = True
        while open_for_more:
            group, open_for_more = self._next_group()
            self._serve(group)
            _deliver(group)
        if self._connection is not None:
            self._connection.close()

    def _next_group(self) -> tuple[list[_Request], bool]:
        """Wait for a request, and take those that queued up behind it."""
        request = self._requests.get()
        group: list[_Request] = []
        while request is not None:
            group.append(request)
            if len(group) == LARGEST_GROUP:
                return group, True
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _serve(self, group: Sequence[_Request]) -> None:
        """Make all changes of the group in one transaction, or let all of them fail."""
        if not group:
            return
        try:
            if self._connection is None:
                self._connection = connecting.connect(self._path)
            _transact(self._connection, group, self._path)
        except sqlite3.Error as error:
            self._fail(group, connecting.explanation(error, self._path))
        except errors.AnubisError as error:
            self._fail(group, error)

    def _fail(self, group: Sequence[_Request], error: errors.AnubisError) -> None:
        for request in group:
            request.error = copy.copy(error)  # each waiter raises one of its own
        if self._connection is not None and self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # the failure itself is already reported
                self._connection.execute("ROLLBACK")


def _transact(
    connection: sqlite3.Connection, group: Sequence[_Request], path: pathlib.Path
) -> None:
    connecting.begin(connection)
    for request in group:
        _attempt(connection, request, path)
    connection.execute("COMMIT")


def _attempt(connection: sqlite3.Connection, request: _Request, path: pathlib.Path) -> None:
    connection.execute("SAVEPOINT change")
    try:
        request.result = request.change(connection)
    except sqlite3.Error as error:
        if not connection.in_transaction:  # a full disk, for one, undoes the whole transaction
            raise
        request.error = connecting.explanation(error, path)
        request.error.__cause__ = error
    except Exception as error:  # noqa: BLE001 - not swallowed: it goes to whoever asked
        request.error = error
    if request.error is not None:
        connection.execute("ROLLBACK TO change")
    connection.execute("RELEASE change")


def _deliver(group: Sequence[_Request]) -> None:
    """Wake everybody who waits, each loop once: a wake-up costs a system call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Request]] = {}
    for request in group:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_deliver_all, requests)


def _deliver_all(requests: Sequence[_Request]) -> None:
    for request in requests:
        request.deliver()
