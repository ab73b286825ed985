"""A plan: the units a run needs and which unit's exit decides the outcome."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from anubis.domain.metric import MetricDefinition

SCRIPTS_VARIABLE: Final = "BAI_SCRIPTS_PATH"
"""Tells a program where the code is that was submitted with its descriptor."""

SCRIPTS_FOLDER: Final = "\0scripts\0"
"""Stands in a plan for that folder, until the run has one. No command line can hold a NUL."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long each state may last, how much a program may write, and how many may run at once.

    From ``[limits]``.
    """

    fetching: timedelta = timedelta(hours=24)
    """The original gave up downloads after 24 hours; we keep that."""

    queued: timedelta = timedelta(days=7)
    """A week: a nightly benchmark that waited through seven nights will not be missed."""

    starting: timedelta = timedelta(hours=1)
    """Long enough for a large image on a slow registry."""

    running: timedelta = timedelta(hours=24)
    """A day: longer training is rare enough to be said in the descriptor."""

    finishing: timedelta = timedelta(hours=1)
    """Storing and indexing 10 GiB of output takes minutes."""

    grace: timedelta = timedelta(seconds=10)
    """Between SIGTERM and SIGKILL. Docker's habit, which programs are written for."""

    output_bytes: int = 10 * 1024**3
    """What all streams of a unit may write together before the run is stopped."""

    concurrency: int | None = None
    """Most runs of the same benchmark at once; for the queue. None: as many as there is room."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One program of a run."""

    name: str
    command: tuple[str, ...]  #: no shell is involved
    environment: Mapping[str, str]  #: from the descriptor; wins over everything else
    inherited: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The submitter's own environment, for engines that run on the submitter's machine. What the
    engine itself gives every program comes on top of it, and ``environment`` on top of that."""
    directory: str | None = None  #: working directory; the engine's default when None
    image: str | None = None
    script: str = ""  #: an archive of code that it needs; ``SCRIPTS_FOLDER`` stands for its place
    cpu_affinity: tuple[int, ...] = ()  #: empty: all CPUs
    niceness: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All units of a run. The outcome is decided by the exit of ``deciding``."""

    units: tuple[Unit, ...]
    deciding: str
    limits: Limits
    metrics: tuple[MetricDefinition, ...] = ()  #: what to look for in the output

    def __post_init__(self) -> None:
        if self.deciding not in {unit.name for unit in self.units}:
            raise ValueError(f"the deciding unit {self.deciding!r} is not among the units")


def scripts(plan: Plan) -> tuple[str, ...]:
    """The archives of code that the units need."""
    return tuple(unit.script for unit in plan.units if unit.script)


def placed(plan: Plan, folder: str) -> Plan:
    """The plan with ``folder`` where ``SCRIPTS_FOLDER`` stands."""
    if not scripts(plan):
        return plan
    return dataclasses.replace(plan, units=tuple(_placed(unit, folder) for unit in plan.units))


def _placed(unit: Unit, folder: str) -> Unit:
    environment = {
        name: value.replace(SCRIPTS_FOLDER, folder) for name, value in unit.environment.items()
    }
    command = tuple(word.replace(SCRIPTS_FOLDER, folder) for word in unit.command)
    return dataclasses.replace(unit, command=command, environment=environment)


def to_json(plan: Plan) -> str:
    """Write a plan down, for the time between submission and start."""
    # By hand: dataclasses.asdict would copy every variable of the environment, at ten times the
    # price of writing them.
    limits = {name: getattr(plan.limits, name) for name in _LIMITS}
    return json.dumps(
        {
            "units": [{name: getattr(unit, name) for name in _UNIT} for unit in plan.units],
            "deciding": plan.deciding,
            "limits": limits,
            "metrics": [dataclasses.asdict(metric) for metric in plan.metrics],
        },
        default=_plain,
        separators=(",", ":"),
    )


def _plain(value: object) -> object:
    """What JSON has no word for: durations in seconds, mappings that are no dict."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    assert isinstance(value, Mapping), f"a plan holds no {type(value).__name__}"
    return dict(value)


_UNIT = tuple(field.name for field in dataclasses.fields(Unit))
_LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
_COUNTS = ("output_bytes", "concurrency")  # of the limits, those that are no durations


def from_json(text: str) -> Plan:
    """Read a plan that ``to_json`` wrote."""
    data = json.loads(text)
    return Plan(
        units=tuple(_unit(unit) for unit in data["units"]),
        deciding=data["deciding"],
        limits=_limits(data["limits"]),
        metrics=tuple(MetricDefinition(**metric) for metric in data["metrics"]),
    )


def _limits(data: dict[str, Any]) -> Limits:
    """Limits that an older version did not know have their defaults."""
    for name in data.keys() - set(_COUNTS):
        data[name] = timedelta(seconds=data[name])
    return Limits(**data)


def _unit(data: dict[str, Any]) -> Unit:
    data["command"] = tuple(data["command"])
    data["cpu_affinity"] = tuple(data["cpu_affinity"])
    return Unit(**data)
