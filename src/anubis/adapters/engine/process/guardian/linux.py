"""The few calls of the Linux kernel that Python does not offer."""

from __future__ import annotations

import ctypes
import functools
import os

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 1, 32, 4096, 16384, 1 << 19


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _prctl(option: int, value: int | bytes) -> None:
    _check(_libc().prctl(option, value, 0, 0, 0))


def adopt_orphans(wanted: bool) -> None:
    """Become, or stop being, the parent of descendants whose own parent dies."""
    _prctl(PR_SET_CHILD_SUBREAPER, int(wanted))


def name_process(name: str) -> None:
    """Set what ``ps`` and ``top`` show; the kernel keeps 15 bytes."""
    _prctl(PR_SET_NAME, name.encode())


def protect(paths: list[str]) -> None:
    """Let this process and its later children read these paths, but not change them, not even as
    root: they get a view of their own of what is mounted. Raises OSError where that is forbidden.
    """
    _check(_libc().unshare(CLONE_NEWNS))
    _mount(b"none", b"/", MS_REC | MS_SLAVE)  # ours are not seen by others; theirs are by us
    for path in paths:
        place = os.fsencode(path)
        _mount(place, place, MS_BIND)
        _mount(b"none", place, MS_BIND | MS_REMOUNT | MS_RDONLY)


def _mount(source: bytes, target: bytes, flags: int) -> None:
    _check(_libc().mount(source, target, None, ctypes.c_ulong(flags), None))
