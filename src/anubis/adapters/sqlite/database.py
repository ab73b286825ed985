"""What stores are given: one file, one connection that reads, one thread that writes."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import Concatenate, ParamSpec, TypeVar

from anubis.adapters.sqlite import connecting, migrating, writing

P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """One file that several stores share and several processes may use at once.

    Reads happen at once, on the event loop; changes go through the writer thread.
    """

    def __init__(self, path: pathlib.Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection  # only ever reads, once it is open
        self._writer = writing.Writer(path)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: pathlib.Path) -> AsyncIterator[Database]:
        """Open the file at ``path``, made or brought up to date if need be.

        Its folder must exist. Raises StoreUnusable or StoreUnavailable with a sentence.
        """
        with contextlib.closing(connecting.connect(path)) as connection:
            with connecting.explained(path):
                if not migrating.is_current(connection, path):
                    await asyncio.to_thread(migrating.migrate, connection, path)
            database = cls(path, connection)
            try:
                yield database
            finally:
                await database._writer.close()

    def read(
        self,
        question: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Ask, here and now, what takes a fraction of a millisecond."""
        with connecting.explained(self._path):
            return question(self._connection, *args, **kwargs)

    async def read_apart(
        self,
        question: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Ask what may take longer: in a thread, on a connection of its own."""

        def ask() -> T:
            connection = connecting.connect(self._path)
            with connecting.explained(self._path), contextlib.closing(connection):
                return question(connection, *args, **kwargs)

        return await asyncio.to_thread(ask)

    async def do(self, change: writing.Change[T]) -> T:
        """Make a change and give its result once it is durable."""
        return await self._writer.do(change)
