"""The processes of the cluster: started so that they outlive us, and found again without doubt.

A process is known by its id, the moment it began and the boot it began in, so that a number that
the machine gave to somebody else meanwhile is never mistaken for one of ours.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Sequence

from tests.cluster.layout import ClusterTrouble, Layout

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PATIENCE_SECONDS = 10.0
"""For a part that was asked to end; then it is killed."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One process, for certain."""

    pid: int
    began: int  #: in the machine's ticks since it booted
    boot: str

    @property
    def lives(self) -> bool:
        """Whether this very process still runs."""
        return self.began >= 0 and self.boot == boot() and self.began == _began(self.pid)


def start(place: Layout, name: str, command: Sequence[str]) -> None:
    """Start a part in a session of its own, with nothing of our environment."""
    # A shell in between, which ends at once: the part is nobody's child, and nothing waits for it.
    script = 'setsid "$@" >>"$0" 2>&1 </dev/null & echo $!'
    environment = {"PATH": SEARCH_PATH, "HOME": "/root", "LANG": "C.UTF-8"}
    log = place.log / f"{name}.log"
    done = subprocess.run(
        ["sh", "-c", script, str(log), *command],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        check=True,
    )
    remember(place, name, int(done.stdout))


def remember(place: Layout, name: str, pid: int) -> None:
    """Write down which process that is."""
    process = Process(pid=pid, began=_began(pid), boot=boot())
    unfinished = _file(place, name).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(dataclasses.asdict(process)))
    unfinished.rename(_file(place, name))


def find(place: Layout, name: str) -> Process | None:
    """The process of a part, if it runs."""
    try:
        kept = json.loads(_file(place, name).read_text())
    except (FileNotFoundError, ValueError):
        return None
    process = Process(pid=kept["pid"], began=kept["began"], boot=kept["boot"])
    return process if process.lives else None


def is_remembered(place: Layout, name: str) -> bool:
    """Whether it was written down, whether it lives or not."""
    return _file(place, name).exists()


def stop(place: Layout, name: str) -> bool:
    """End a part; whether it ran."""
    process = find(place, name)
    if process is not None:
        _signal(process, signal.SIGTERM)
        if not _ended(process, PATIENCE_SECONDS):
            kill(place, name)
    _file(place, name).unlink(missing_ok=True)
    return process is not None


def kill(place: Layout, name: str) -> None:
    """End a part without a warning, and wait until it is gone."""
    process = find(place, name)
    if process is None:
        return
    _signal(process, signal.SIGKILL)
    if not _ended(process, PATIENCE_SECONDS):
        raise ClusterTrouble(f"{name} (process {process.pid}) cannot be killed")


def last_words(place: Layout, name: str) -> str:
    """The end of what a part said."""
    try:
        text = (place.log / f"{name}.log").read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-8:])


def boot() -> str:
    """What tells one boot of the machine from the next."""
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _file(place: Layout, name: str) -> pathlib.Path:
    return place.run / f"{name}.process"


def _began(pid: int) -> int:
    """In ticks; -1 if there is no such process, or only what is left of it."""
    try:
        told = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    state, *fields = told.rpartition(")")[2].split()
    if state in "ZX" and _threads(pid) <= 1:
        return -1
    return int(fields[18])


def _threads(pid: int) -> int:
    """The first of them may be gone while others still hold what the process has open."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))
    return 0


def _signal(process: Process, number: signal.Signals) -> None:
    if process.lives:
        os.kill(process.pid, number)


def _ended(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.lives:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
