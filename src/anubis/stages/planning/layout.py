"""What a strategy makes of a descriptor: units, and which of them decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Protocol

from anubis.domain.descriptor import Descriptor, Output
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import Unit
from anubis.stages.planning.place import Place
from anubis.stages.planning.programs import Program
from anubis.stages.planning.sources import Placed


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What is planned, and for where."""

    descriptor: Descriptor
    place: Place
    data: tuple[Placed, ...]
    models: tuple[Placed, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The parts of a plan that depend on the strategy."""

    units: tuple[Unit, ...]
    deciding: str
    metrics: tuple[MetricDefinition, ...]
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    needs_keys: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """What can be said before it is known whether the engine can do it."""

    programs: tuple[Program, ...] = ()
    obstacles: tuple[str, ...] = ()  #: of the strategy itself


class LayingOut(Protocol):
    """A strategy. Its modules are of this form."""

    def draft(self, task: Task) -> Draft:
        """What would run, and what of it cannot be."""
        ...

    def layout(self, task: Task) -> Layout:
        """The units, if nothing stands in the way."""
        ...


def definitions(output: Output, unit: str | None = None) -> Iterable[MetricDefinition]:
    """The metrics to be found in the output of a unit, or of all."""
    for metric in output.metrics:
        yield MetricDefinition(
            name=metric.name, units=metric.units, pattern=metric.pattern, unit=unit
        )
