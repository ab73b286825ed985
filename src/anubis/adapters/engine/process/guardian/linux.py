"""The few calls of the Linux kernel that Python does not offer."""

from __future__ import annotations

import ctypes
import functools
import os

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int | bytes) -> None:
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans(wanted: bool) -> None:
    """Become, or stop being, the parent of descendants whose own parent dies."""
    _prctl(PR_SET_CHILD_SUBREAPER, int(wanted))


def name_process(name: str) -> None:
    """Set what ``ps`` and ``top`` show; the kernel keeps 15 bytes."""
    _prctl(PR_SET_NAME, name.encode())
