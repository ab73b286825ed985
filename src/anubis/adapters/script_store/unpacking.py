"""Write out an archive that ``inspecting`` accepted. Owner, times and rights in it are ignored.

By hand and not with ``tarfile.extractall``: its filters are missing before Python 3.11.4, and were
mended several times since. Nothing is ever written through a link: no path goes through one.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import IO, Final

from anubis.adapters.script_store import inspecting
from anubis.domain.errors import UserError

RIGHTS: Final = 0o700
"""The original gave everybody every right on everything, also to execute; a run has one user."""

COPY_BYTES: Final = 1024**2


def unpack(file: IO[bytes], name: str, folder: Path) -> None:
    """Check the archive in ``file`` and unpack it into ``folder``, which is there and empty.

    Raises UserError for an archive that is not acceptable, or that is cut off.
    """
    members = inspecting.members(file, name)
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in members:
                _write(archive, member, folder)
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"script archive {name}: it cannot be read: {error}") from None


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    place = folder / inspecting.normal(member.name)
    place.parent.mkdir(mode=RIGHTS, parents=True, exist_ok=True)
    if member.isdir():
        place.mkdir(mode=RIGHTS, exist_ok=True)
        return
    place.unlink(missing_ok=True)  # a file that is there twice: the later one counts
    if member.issym():
        place.symlink_to(member.linkname)
    elif member.islnk():
        os.link(folder / inspecting.normal(member.linkname), place)
    else:
        _write_file(archive, member, place)


def _write_file(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    content = archive.extractfile(member)
    assert content is not None, "only files are written"
    with content, os.fdopen(os.open(place, flags, RIGHTS), "wb") as copy:
        shutil.copyfileobj(content, copy, COPY_BYTES)
