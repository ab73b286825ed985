"""What a container may change is copied into it, not lent.

Code that was submitted with a run is the run's own copy, and its program may write beside it. Were
the folder mounted, a container's root would leave files there that we, who may be nobody special,
could never remove. Within the container they go with it.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import PurePosixPath

from anubis.domain.plan import Mount, Unit


def lent(unit: Unit) -> Sequence[Mount]:
    """What a unit sees of this machine and cannot change."""
    return [mount for mount in unit.mounts if mount.read_only]


def given(unit: Unit) -> Sequence[Mount]:
    """What a unit gets a copy of."""
    return [mount for mount in unit.mounts if not mount.read_only]


def packed(mounts: Sequence[Mount]) -> bytes:
    """All of it as one archive, to be unpacked at the container's root. Blocks."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for mount in mounts:
            target = PurePosixPath(mount.target).relative_to("/")
            for parent in reversed(target.parents[:-1]):
                archive.addfile(_folder(str(parent)))
            archive.add(mount.source, arcname=str(target), filter=_ownerless)
    return content.getvalue()


def _folder(name: str) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    return folder


def _ownerless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Ours on this machine is nobody there."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
