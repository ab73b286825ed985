"""Write down what a shim shall do, in the directory it shares with us."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from anubis.adapters.engine.process.guardian import files
from anubis.domain.observation import EndCause
from anubis.domain.plan import Plan, Unit, filled_unit
from anubis.domain.run import RunId

EMIT_WAIT_SECONDS = 60
"""What the original gave every program; ours never has to wait, the FIFO is there first."""


def write_spec(
    directory: Path, run_id: RunId, plan: Plan, name: str, meanings: Mapping[str, str]
) -> None:
    """Make the unit's directory with everything a shim needs. Safe to repeat.

    ``meanings`` is what the blanks of its command and environment stand for.
    """
    unit = filled_unit(plan.unit(name), meanings)
    live = make_place(directory)
    spec = {
        "run_id": run_id,
        "unit": unit.name,
        "argv": list(unit.command),
        "environment": _environment(live, run_id, unit),
        "directory": unit.directory or str(directory / files.WORK),
        "affinity": list(unit.cpu_affinity),
        "niceness": unit.niceness,
        "running_seconds": longest(plan, name).total_seconds(),
        "grace": plan.limits.grace.total_seconds(),
        "output_bytes": plan.limits.output_bytes,
        "protected": list(plan.protected),
    }
    files.write_durably(live, files.SPEC, json.dumps(spec).encode(), sync=False)


def make_place(directory: Path) -> str:
    """Make a unit's directory, and the pipes of its guard in memory: their folder is returned."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    live = files.live(str(directory))
    Path(live).mkdir(mode=0o700, exist_ok=True)
    for fifo in (*(fifo for fifo, _ in files.STREAMS), files.CONTROL):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(f"{live}/{fifo}", 0o600)
    return live


def longest(plan: Plan, name: str) -> timedelta:
    """How long a unit may run. One that others wait for begins before the unit that decides, by as
    much as all the waiting takes, and must be there as long as that one is.
    """
    limits = plan.limits
    if name == plan.deciding:
        return limits.running
    waits = len({unit.after for unit in plan.units if unit.after})
    return limits.running + max(1, waits) * limits.readiness + limits.grace


def _environment(live: str, run_id: RunId, unit: Unit) -> dict[str, str]:
    """The submitter's, then what ``emit()`` needs, then the descriptor's; then the marks we find
    processes by. A plan from elsewhere brings no environment of a submitter: then it is ours.
    """
    return {
        **(unit.inherited or os.environ),
        "BENCHMARK_AI": "fifo",
        "BENCHMARK_AI_FIFO_FILEPATH": f"{live}/{files.STREAMS[2][0]}",
        "BENCHMARK_AI_FIFO_MAX_WAIT_TIME": str(EMIT_WAIT_SECONDS),
        **unit.environment,
        "ANUBIS_RUN_ID": run_id,
        "ANUBIS_UNIT": unit.name,
    }


def write_stop(directory: Path, grace: timedelta, cause: EndCause) -> None:
    """Ask the shim to stop its run: a file to be found, then a line that wakes it.

    A shim that is not awake yet looks for the file before it starts the program. Of several
    requests, the first decides the cause and the shortest the patience.
    """
    live = files.live(str(directory))
    Path(live).mkdir(mode=0o700, exist_ok=True)  # should somebody have cleaned up in memory
    known = files.read_json(live, files.STOP) or {}
    seconds = max(0.0, grace.total_seconds())
    request = {
        "grace": min(seconds, float(str(known.get("grace", seconds)))),
        "cause": known.get("cause", cause.value),
    }
    files.write_durably(live, files.STOP, json.dumps(request).encode(), sync=False)
    # Without a reader, the shim is not there yet, or not any more; a full pipe will wake it too.
    with contextlib.suppress(OSError):
        control = os.open(f"{live}/{files.CONTROL}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(control, "wb", buffering=0) as file:
            file.write(b"\n")
