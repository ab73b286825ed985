"""Script archives as files of a folder, ``<sha1>.tar`` each. They survive restarts."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

from anubis.adapters.script_store import naming
from anubis.domain.errors import StoreUnavailable, UserError

_UNFINISHED = ".upload-"
"""How files begin whose upload has not ended, or never will."""


class DirectoryScriptStore:
    """One file per archive. A file gets its name when it is whole, checked and on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def has(self, name: str) -> bool:
        """See the port."""
        return naming.is_legal(name) and (self._folder / name).is_file()

    async def put(self, name: str, content: AsyncIterator[bytes]) -> None:
        """See the port. The content never is in memory as a whole."""
        naming.demand_legal(name)
        # Imported where they are used, here and below: every command opens this store, and next to
        # none of them touches an archive.
        import tempfile

        with contextlib.ExitStack() as stack:
            with self._writing():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = stack.enter_context(
                    tempfile.NamedTemporaryFile(dir=self._folder, prefix=_UNFINISHED)
                )
            naming.demand_content(name, await self._receive(name, content, file))
            with self._writing():
                await asyncio.to_thread(self._accept, name, file)

    async def unpack(self, name: str, folder: str) -> None:
        """See the port."""
        naming.demand_legal(name)
        await asyncio.to_thread(self._unpack, name, Path(folder))

    async def _receive(self, name: str, content: AsyncIterator[bytes], file: IO[bytes]) -> str:
        """Write the content as it comes, and give its SHA-1."""
        from anubis.adapters.script_store import inspecting

        sha1 = hashlib.sha1(usedforsecurity=False)
        size = 0
        async for part in content:
            size += len(part)
            inspecting.demand_size(name, size)
            sha1.update(part)
            with self._writing():
                await asyncio.to_thread(file.write, part)
        return sha1.hexdigest()

    def _accept(self, name: str, file: IO[bytes]) -> None:
        """Check a whole archive and give it its name."""
        from anubis.adapters.script_store import inspecting

        file.flush()
        file.seek(0)
        inspecting.members(file, name)
        os.fsync(file.fileno())
        # A link and not a rename: what is there under this name has the same content, and stays.
        with contextlib.suppress(FileExistsError):
            os.link(file.name, self._folder / name)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unpack(self, name: str, folder: Path) -> None:
        from anubis.adapters.script_store import unpacking

        try:
            file = (self._folder / name).open("rb")
        except FileNotFoundError:
            raise UserError(f"script archive {name} is not here; upload it first") from None
        with file:
            unpacking.unpack(file, name, folder)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Our disk's errors; those of whoever sends the content are not ours."""
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(f"{self._folder} cannot be written: {error.strerror}") from error
