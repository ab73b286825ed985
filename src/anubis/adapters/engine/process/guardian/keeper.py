"""Hold the pipes of a run whose zygote died, so that its shim is never the only one who does.

A zygote keeps the pipes of its shims open and finishes the run of a shim that is killed. When the
zygote itself is killed, each of its shims hires a keeper for that: a process that does nothing but
wait for the shim's lock, and then finds the run either ended or in need of being finished. Runs
under a living zygote never pay for one.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys

from anubis.adapters.engine.process.guardian import files, linux, recovery, revival


def hire(directory: str, revive: list[str] | None) -> None:
    """Start a keeper that is no child of ours: we wait for all our children to end."""
    linux.adopt_orphans(False)  # the keeper shall be init's; recovery finds who slips through
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            _keep(directory, revive)
        os._exit(0)
    os.waitpid(child, 0)
    linux.adopt_orphans(True)


def _keep(directory: str, revive: list[str] | None) -> None:
    """In the keeper. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        os.closerange(3, 1 << 16)  # the shim's lock among them: it must end with the shim
        linux.name_process("anubis-keeper")
        gc.freeze()
        held = recovery.hold(directory)
        lock = os.open(f"{directory}/{files.LOCK}", os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the shim is gone
        os.close(lock)
        if not files.has_ended(directory):
            recovery.recover(directory, "the shim was killed after its zygote")
            if revive:
                revival.start_detached(revive)
        del held
    except OSError as error:  # the run was purged, or the disk is full: the engine will see
        sys.stderr.write(f"{directory}: {error}\n")
    finally:
        os._exit(0)
