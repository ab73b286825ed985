"""What a guard knows of its container: what was asked for, how it is, what it wrote, how it ended.

Values and sentences; who acts on them is ``container``.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os

from anubis.adapters.engine.process.guardian import files

NOT_EXECUTED = (126, 127)
"""What an init exits with when it cannot execute the program it was given."""

STOPPED_BY = (15, 9)  #: how programs end that we stop, if they do not exit by themselves

_GOING = ("removing", "dead")  #: what the daemon calls a container that is being removed

_COMPLAINTS = (b"[FATAL tini (", b"ERROR (catatonit:")
"""How the two inits begin that Docker and Podman put into containers."""


class Spec:
    """What the engine wrote down for a guard, on the disk beside the journal."""

    __slots__ = (
        "address",
        "container",
        "grace",
        "has_init",
        "output_bytes",
        "running_seconds",
        "unit",
        "version",
    )

    def __init__(self, content: dict[str, object]) -> None:
        self.unit = str(content["unit"])
        self.container = str(content["container"])  #: its id, as the daemon tells it
        self.address = str(content["address"])
        self.version = str(content["version"])
        self.running_seconds = float(str(content["running_seconds"]))
        self.grace = float(str(content["grace"]))
        self.output_bytes = int(str(content["output_bytes"]))
        self.has_init = bool(content["has_init"])

    @classmethod
    def read(cls, directory: str) -> Spec:
        """Raises ValueError if there is none."""
        content = files.read_json(directory, files.CONTAINER)
        if content is None:
            raise ValueError(f"{directory} has no {files.CONTAINER}")
        return cls(content)


class State:
    """How a container is, from the daemon's long description; empty for one that is gone."""

    __slots__ = ("_state", "is_known")

    def __init__(self, description: dict[str, object]) -> None:
        state = description.get("State")
        self.is_known = isinstance(state, dict) and state.get("Status") not in _GOING
        self._state: dict[str, object] = state if isinstance(state, dict) else {}

    @property
    def is_created(self) -> bool:
        """Whether it was never started. Podman has a word more for the same."""
        return self._state.get("Status") in ("created", "configured", "initialized")

    @property
    def is_running(self) -> bool:
        """Whether its program may still do something."""
        return bool(self._state.get("Running")) or self._state.get("Status") == "stopping"

    @property
    def is_out_of_memory(self) -> bool:
        """Whether the kernel killed one of its processes for want of memory."""
        return bool(self._state.get("OOMKilled"))

    @property
    def exit_code(self) -> int:
        """As the daemon tells it: signals are in it."""
        return int(str(self._state.get("ExitCode", 0)))

    @property
    def process(self) -> int:
        """Its first process, as the daemon counts processes."""
        return int(str(self._state.get("Pid", 0)))

    @property
    def started_ns(self) -> int:
        """When it began, in ns since 1970."""
        return nanoseconds(str(self._state.get("StartedAt", "")))


class Output:
    """What a container wrote, in the files that observers read."""

    __slots__ = ("_files", "kept")

    def __init__(self, directory: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._files = [os.open(f"{directory}/{files.STREAMS[n][1]}", flags, 0o600) for n in (0, 1)]
        self.kept = [os.fstat(file).st_size for file in self._files]  #: bytes of stdout and stderr

    def keep(self, stream: int, content: bytes) -> None:
        """Append; what a dead guard wrote last counts, whether or not it lived to mark it."""
        files.write_all(self._files[stream], content)
        self.kept[stream] += len(content)

    def sync(self) -> None:
        """Bring what was kept to the disk."""
        for file, size in zip(self._files, self.kept, strict=True):
            if size:
                os.fsync(file)
            os.close(file)


def read_stop(live: str) -> tuple[float, str] | None:
    """Grace and cause of a request to stop, if there is one; its writer replaces it whole."""
    content = files.read_json(live, files.STOP)
    return (float(str(content["grace"])), str(content["cause"])) if content else None


def note_stop(live: str, grace: float, cause: str) -> None:
    """Write down why a container is stopped, for a guard who comes after us. The first counts."""
    if read_stop(live) is None:
        content = json.dumps({"grace": grace, "cause": cause}).encode()
        files.write_durably(live, files.STOP, content, sync=False)


def exit_of(code: int) -> tuple[int | None, int | None]:
    """Exit code and signal, of which one is None.

    The daemon tells a signal n as 128 + n. A program that exits with such a number by itself, as
    shells do for a child that was killed, cannot be told apart from one that was killed.
    """
    return (None, code - 128) if 129 <= code <= 128 + 31 else (code, None)


def nanoseconds(moment: str) -> int:
    """A time as the daemon writes it, ``2024-01-31T10:00:00.123456789Z``; now if it is none."""
    with contextlib.suppress(ValueError):
        whole, _, fraction = moment.rstrip("Z").partition(".")
        begin = dt.datetime.fromisoformat(f"{whole[:19]}+00:00")
        if begin.year > 1970:
            return int(begin.timestamp()) * 10**9 + int((fraction[:9] or "0").ljust(9, "0"))
    return int(dt.datetime.now(dt.UTC).timestamp() * 1e9)


def is_complaint(words: bytes) -> bool:
    """Whether an init says that it cannot execute the program."""
    return words.startswith(_COMPLAINTS)


def explained(message: str) -> str:
    """Why a program could not be started, in the daemon's words behind a short sentence of ours."""
    words = " ".join(message.split())
    short = words.lower()
    if "no such file or directory" in short or "not found" in short:
        return f"the program was not found in the image: {words}"
    if "permission denied" in short:
        return f"the program cannot be executed: {words}"
    return words
