"""Turn a specification into a running program, or into a sentence that says why not."""

from __future__ import annotations

import errno
import json
import os
import select
import signal

from anubis.adapters.engine.process.guardian import files

EXEC_SECONDS = 120
"""A program on a network file system may take long to load; longer than this is a dead mount."""


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

    @classmethod
    def read(cls, directory: str) -> Spec:
        """The specification the engine left in the run's directory."""
        spec = cls()
        with os.fdopen(os.open(f"{files.live(directory)}/{files.SPEC}", os.O_RDONLY), "rb") as file:
            for name, value in json.loads(file.read()).items():
                setattr(spec, name, value)
        return spec


def spawn(spec: Spec, run_directory: str) -> int:
    """Start the program; its process id. Raises NotStarted."""
    report, answer = os.pipe()  # close-on-exec: a successful exec is an end of file
    process = os.fork()
    if process == 0:
        os.close(report)
        _become(spec, run_directory, answer)
    os.close(answer)
    try:
        failure = _await_exec(report, process)
    finally:
        os.close(report)
    if failure:
        os.waitpid(process, 0)
        step, number = failure.rsplit(" ", 1)
        raise NotStarted(explain(spec, step, int(number)))
    return process


def _await_exec(report: int, process: int) -> str:
    poll = select.poll()
    poll.register(report, select.POLLIN)
    if not poll.poll(EXEC_SECONDS * 1000):
        os.kill(process, signal.SIGKILL)
        return f"waiting {errno.ETIMEDOUT}"
    return os.read(report, 256).decode()


def _become(spec: Spec, run_directory: str, answer: int) -> None:
    """In the child: set everything up and become the program. Never returns."""
    step = "fork"
    try:
        os.setsid()
        _reset_signals()
        step = "output"
        _connect(run_directory)
        step = "affinity"
        if spec.affinity:
            os.sched_setaffinity(0, spec.affinity)
        step = "niceness"
        if spec.niceness:
            os.setpriority(os.PRIO_PROCESS, 0, spec.niceness)
        step = "directory"
        os.chdir(spec.directory)
        step = "program"
        os.execvpe(spec.argv[0], spec.argv, spec.environment)  # noqa: S606 (no shell is the point)
    except OSError as error:
        os.write(answer, f"{step} {error.errno or errno.EINVAL}".encode())
    except (ValueError, TypeError, OverflowError, IndexError):  # a NUL byte, no words at all, ...
        os.write(answer, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _reset_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Python ignores these two, and an ignored signal stays ignored over exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def _connect(run_directory: str) -> None:
    """Give the program its streams, open for reading too, as a terminal is.

    The program then keeps its own pipes alive: should shim, zygote and engine be killed together,
    what it wrote waits in the pipe for whoever comes back, and writing more does not end it with
    SIGPIPE. For the same reason it does not die with the shim: it is stopped by the zygote, or by
    the engine that takes the run up, and only then are its pipes drained.
    """
    null = os.open("/dev/null", os.O_RDONLY)
    place = files.live(run_directory)
    stdout = os.open(f"{place}/{files.STREAMS[0][0]}", os.O_RDWR)
    stderr = os.open(f"{place}/{files.STREAMS[1][0]}", os.O_RDWR)
    for target, source in enumerate((null, stdout, stderr)):
        os.dup2(source, target)


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
