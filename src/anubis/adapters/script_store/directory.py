"""Script archives as files of a folder, ``<hex digits>.tar`` each. They survive restarts.

The time at which a file was changed says when its archive was last used.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from anubis.adapters.script_store import naming, room
from anubis.domain.errors import StoreUnavailable
from anubis.ports.clock import Clock

_UNFINISHED = ".upload-"
"""How files begin whose upload has not ended, or never will."""


class DirectoryScriptStore:
    """One file per archive. A file gets its name when it is whole, checked and on the disk."""

    def __init__(self, folder: Path, clock: Clock, *, most: int = room.MOST_KEPT) -> None:
        self._folder = folder
        self._clock = clock
        self._most = most
        self._using = threading.Lock()  # one is not removed between a look at it and its use
        self._accepting = threading.Lock()  # two do not take the last room together

    async def has(self, name: str) -> bool:
        """See the port."""
        with self._using:
            return naming.is_legal(name) and self._is_used(name)

    async def put(self, name: str, content: AsyncIterable[bytes]) -> None:
        """See the port. The content never is in memory as a whole."""
        naming.demand_legal(name)
        # Imported where they are used, here and below: every command opens this store, and next to
        # none of them touches an archive.
        import tempfile

        with contextlib.ExitStack() as stack:
            with self._writing():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = stack.enter_context(
                    tempfile.NamedTemporaryFile(dir=self._folder, prefix=_UNFINISHED, delete=False)
                )
                # By us: one that took very long may be gone, and ``tempfile`` insists on it.
                stack.callback(Path(file.name).unlink, missing_ok=True)
            naming.demand_content(name, await self._receive(name, content, file))
            with self._writing():
                await asyncio.to_thread(self._accept, name, file)

    async def unpack(self, name: str, folder: str) -> None:
        """See the port."""
        naming.demand_legal(name)
        await asyncio.to_thread(self._unpack, name, Path(folder))

    async def read(self, name: str, *, most: int) -> bytes:
        """See the port."""
        naming.demand_legal(name)
        return await asyncio.to_thread(self._read, name, most)

    async def forget_unused(self, before: datetime) -> int:
        """See the port."""
        return await asyncio.to_thread(self._forget, before, naming.is_legal)

    async def forget_unfinished(self, before: datetime) -> int:
        """See the port."""
        return await asyncio.to_thread(self._forget, before, _is_unfinished)

    async def _receive(
        self, name: str, content: AsyncIterable[bytes], file: IO[bytes]
    ) -> naming.Fingerprint:
        """Write the content as it comes, and give its fingerprint."""
        from anubis.adapters.script_store import inspecting

        found = naming.fingerprint(name)
        size = 0
        with self._writing():
            kept = await asyncio.to_thread(self._kept_beside, name)
        async for part in content:
            size += len(part)
            inspecting.demand_size(name, size)
            self._demand_room(name, size, kept)
            found.update(part)
            with self._writing():
                await asyncio.to_thread(file.write, part)
        return found

    def _accept(self, name: str, file: IO[bytes]) -> None:
        """Check a whole archive and give it its name."""
        from anubis.adapters.script_store import inspecting

        file.flush()
        file.seek(0)
        inspecting.members(file, name)
        os.fsync(file.fileno())
        with self._accepting:
            size = os.fstat(file.fileno()).st_size
            self._demand_room(name, size, self._kept_beside(name))
            self._place(name, file)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _place(self, name: str, file: IO[bytes]) -> None:
        with self._using:
            # A link and not a rename: what is there under this name is the same, and stays.
            with contextlib.suppress(FileExistsError):
                os.link(file.name, self._folder / name)
            self._is_used(name)

    def _unpack(self, name: str, folder: Path) -> None:
        from anubis.adapters.script_store import unpacking

        with self._opened(name) as file:
            unpacking.unpack(file, name, folder)

    def _read(self, name: str, most: int) -> bytes:
        with self._opened(name) as file:
            room.demand_bounded(name, os.fstat(file.fileno()).st_size, most=most)
            return file.read()

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        """One that is there, and that counts as used."""
        with contextlib.ExitStack() as stack:
            with self._using:
                if not self._is_used(name):
                    raise naming.missing(name)
                file = stack.enter_context((self._folder / name).open("rb"))
            yield file

    def _is_used(self, name: str) -> bool:
        """Note that an archive is used now; False if it is not there."""
        path = self._folder / name
        if not path.is_file():
            return False
        now = _nanoseconds(self._clock.now())
        with contextlib.suppress(OSError):  # one that we may read only is never removed either
            os.utime(path, ns=(now, now))
        return True

    def _demand_room(self, name: str, size: int, kept: int | None) -> None:
        if kept is not None:
            room.demand_room(name, size, kept=kept, most=self._most)

    def _kept_beside(self, name: str) -> int | None:
        """Bytes that all archives take; None if this one is among them and needs no more room."""
        if (self._folder / name).is_file():
            return None
        return sum(found.st_size for _, found in self._files(naming.is_legal))

    def _forget(self, before: datetime, is_meant: Callable[[str], bool]) -> int:
        limit = _nanoseconds(before)
        with self._writing():
            old = [path for path, found in self._files(is_meant) if found.st_mtime_ns < limit]
            return sum(self._is_forgotten(path, limit) for path in old)

    def _is_forgotten(self, path: Path, limit: int) -> bool:
        """Remove a file unless somebody has used it in the meantime."""
        with self._using:
            try:
                if path.stat().st_mtime_ns >= limit:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
            return True

    def _files(self, is_meant: Callable[[str], bool]) -> Iterator[tuple[Path, os.stat_result]]:
        """The files of our folder whose names are meant."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # it went while we looked
                    if is_meant(entry.name) and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Our disk's errors; those of whoever sends the content are not ours."""
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(f"{self._folder} cannot be written: {error.strerror}") from error


def _is_unfinished(name: str) -> bool:
    return name.startswith(_UNFINISHED)


def _nanoseconds(moment: datetime) -> int:
    """As file systems count, without the rounding of floats."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
