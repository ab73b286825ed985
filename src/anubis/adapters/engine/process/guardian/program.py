"""Turn a specification into a running program, or into a sentence that says why not."""

# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH110

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
from collections.abc import Iterator

from anubis.adapters.engine.process.guardian import files


class NotStarted(Exception):
    """The program could not be executed; the message says why, for people."""


class Spec:
    """What to run, and under which limits. Read from the run's directory."""

    __slots__ = (
        "affinity",
        "argv",
        "directory",
        "environment",
        "grace",
        "niceness",
        "output_bytes",
        "protected",
        "run_id",
        "running_seconds",
        "unit",
    )

    run_id: str
    unit: str
    argv: list[str]
    environment: dict[str, str]
    directory: str
    affinity: list[int]
    niceness: int
    running_seconds: float
    grace: float
    output_bytes: int
    protected: list[str]  #: what the program may read and not change, whoever it is

    @classmethod
    def read(cls, directory: str) -> Spec:
        """The specification the engine left in the run's directory."""
        spec = cls()
        with os.fdopen(os.open(f"{files.live(directory)}/{files.SPEC}", os.O_RDONLY), "rb") as file:
            for name, value in json.loads(file.read()).items():
                setattr(spec, name, value)
        return spec


def spawn(spec: Spec, run_directory: str) -> int:
    """Start the program; its process id. Raises NotStarted.

    By ``posix_spawn``, which copies none of our memory: forking ourselves would double the cost of
    a run. What it cannot set for the program we set for ourselves, for that moment.
    """
    cpus = os.sched_getaffinity(0)
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    step = "affinity"
    try:
        if spec.affinity:
            _use_cpus(spec.affinity)
        step = "niceness"
        if spec.niceness:
            os.setpriority(os.PRIO_PROCESS, 0, spec.niceness)
        step = "directory"
        os.chdir(spec.directory)
        step = "program"
        return _execute(spec, files.live(run_directory))
    except OSError as error:
        raise NotStarted(explain(spec, step, error.errno or errno.EINVAL)) from error
    except (ValueError, TypeError, OverflowError, IndexError) as error:  # a NUL byte, no words, ...
        raise NotStarted(explain(spec, step, errno.EINVAL)) from error
    finally:
        os.chdir("/")
        os.sched_setaffinity(0, cpus)
        # Only root may become less nice again; a shim as nice as its program does no harm.
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)


def _use_cpus(wanted: list[int]) -> None:
    """Run on these CPUs, on all of them: the kernel would pass over those that do not exist."""
    os.sched_setaffinity(0, wanted)
    if os.sched_getaffinity(0) != set(wanted):
        raise OSError(errno.EINVAL, "no such CPU")


def _execute(spec: Spec, live: str) -> int:
    """Try the places where the program may be, as the shell does: the first that works."""
    failure = OSError(errno.ENOENT, "not found")
    for path in _places(spec):
        try:
            return os.posix_spawn(
                path,
                spec.argv,
                spec.environment,
                file_actions=_streams(live),
                setsid=True,
                setsigmask=(),
                # Python ignores these two, and an ignored signal stays ignored over exec.
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:  # perhaps a later place has one that may be executed
            failure = error
    raise failure


def _places(spec: Spec) -> Iterator[str]:
    name = spec.argv[0]
    if "/" in name:
        yield name
        return
    for folder in spec.environment.get("PATH", os.defpath).split(":"):
        path = f"{folder or '.'}/{name}"
        if os.path.exists(path):
            yield path


def _streams(live: str) -> list[tuple[int, int, str, int, int]]:
    """What the program is connected to: nothing to read, and two pipes to write.

    The pipes are open for reading too, as a terminal is. The program then keeps its own pipes
    alive: should shim, zygote and engine be killed together, what it wrote waits in the pipe for
    whoever comes back, and writing more does not end it with SIGPIPE. For the same reason it does
    not die with the shim: it is stopped by the zygote, or by the engine that takes the run up, and
    only then are its pipes drained.
    """
    return [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, f"{live}/{files.STREAMS[0][0]}", os.O_RDWR, 0),
        (os.POSIX_SPAWN_OPEN, 2, f"{live}/{files.STREAMS[1][0]}", os.O_RDWR, 0),
    ]


def explain(spec: Spec, step: str, number: int) -> str:
    """One sentence about a failed step that names what the user can mend."""
    name = spec.argv[0] if spec.argv else ""
    why = os.strerror(number)
    if step == "directory":
        return f"the working directory {spec.directory!r} cannot be entered: {why}"
    if step == "affinity":
        return f"the CPUs {spec.affinity} cannot be used on this machine: {why}"
    if step == "niceness":
        return f"the niceness {spec.niceness} cannot be set: {why}"
    if step == "program":
        return _explain_exec(name, number, why)
    return f"the program {name!r} could not be started ({step}): {why}"


def _explain_exec(name: str, number: int, why: str) -> str:
    if number == errno.ENOENT and "/" not in name:
        return f"the program {name!r} was not found in PATH"
    if number == errno.ENOENT:
        return f"the program {name!r} does not exist, or the interpreter its first line names"
    if number == errno.EACCES:
        return f"the program {name!r} is not executable: {why}"
    if number == errno.ENOEXEC:
        return f"the program {name!r} is neither a binary for this machine nor a script with '#!'"
    return f"the program {name!r} could not be executed: {why}"
