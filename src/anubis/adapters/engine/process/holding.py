"""What an engine holds in memory of units in flight, and how it observes them.

All that is known about a unit is in its directory. What is held here only makes observing faster,
and keeps the content of pipes alive while no guard has them. Keys are the names of directories.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

from anubis.adapters.engine.process import following, reading, watching
from anubis.adapters.engine.process.gpus import GpuBook, Gpus
from anubis.adapters.engine.process.guardian import files
from anubis.domain.observation import Observation, ResourceReading


class Holding:
    """The units in flight below one engine's root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ends: dict[str, asyncio.Event] = {}
        self._pipes: dict[str, watching.Pipes] = {}
        self._books: dict[str, GpuBook] = {}
        self.gpus = Gpus()

    def hold(self, directory: Path) -> None:
        """Keep what is in the pipes of a unit."""
        if directory.name not in self._pipes:
            self._pipes[directory.name] = watching.Pipes(directory)

    def let_go(self, name: str) -> None:
        """Forget a unit that is over."""
        self._ends.pop(name, None)
        self._books.pop(name, None)
        if pipes := self._pipes.pop(name, None):
            pipes.close()

    def close(self) -> None:
        """Let go of everything. Units go on."""
        for name in list(self._pipes):
            self.let_go(name)

    def note_end(self, name: str) -> None:
        """The zygote saw a guard ending, or died and sees nothing any more."""
        if end := self._ends.pop(name, None):
            end.set()
        if files.has_ended(str(self._root / name)):
            self.let_go(name)

    async def observed(
        self, directory: Path, unit: str, watch: watching.Watch
    ) -> AsyncIterator[Observation]:
        """Everything that was ever seen of a unit, and will be, until its end."""
        if not files.has_ended(str(directory)):
            self.hold(directory)
        follower = following.Follower(directory, unit)
        try:
            while True:
                end = self._ends.setdefault(directory.name, asyncio.Event())
                ended = await watch.ended()  # first, so that the last turn sees everything
                async for observation in reading.observations(follower, follower.turn()):
                    watch.note_news()
                    yield await self._with_gpus(directory, observation)
                if ended is not None:
                    break
                await watch.wait(end)
            async for observation in reading.observations(follower, follower.rest(ended)):
                yield observation
            self.let_go(directory.name)
        finally:
            follower.close()

    async def _with_gpus(self, directory: Path, observation: Observation) -> Observation:
        """Complete a resource reading by what the GPUs did, when there are any."""
        if not isinstance(observation, ResourceReading) or not self.gpus.may_exist:
            return observation
        book = self._books.get(directory.name)
        if book is None:
            book = self._books[directory.name] = GpuBook(directory, self.gpus)
        values = await asyncio.to_thread(book.values_for, observation)
        return dataclasses.replace(observation, gpus=values)
