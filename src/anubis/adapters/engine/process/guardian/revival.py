"""Start the Anubis runtime again when nobody is left to finish a run."""

from __future__ import annotations

import os
import signal

from anubis.adapters.engine.process.guardian import linux


def start_detached(argv: list[str]) -> None:
    """Start a program that is nobody's child, in a session of its own, without our descriptors.

    For a moment we do not adopt orphans: the new runtime must not become our descendant, or we
    would take it for a process that a run left behind.
    """
    linux.adopt_orphans(False)
    middle = os.fork()
    if middle == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _become(argv)
        finally:
            os._exit(0)
    os.waitpid(middle, 0)
    linux.adopt_orphans(True)


def _become(argv: list[str]) -> None:
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for target in range(3):
            os.dup2(null, target)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.chdir("/")
        os.execvp(argv[0], argv)  # noqa: S606 (no shell is the point)
    finally:
        os._exit(127)
