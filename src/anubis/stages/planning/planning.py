"""From what a user wants to what an engine does: the units, their order, and which decides.

descriptor ─► sources ─► draft of the strategy ─► obstacles, or layout ─► plan

Pure: everything that comes from outside is in the context. All that the engine cannot do is told
at once, each with the descriptor's field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from anubis.domain.descriptor import Descriptor, Source, Strategy
from anubis.domain.errors import UserError
from anubis.domain.plan import Fetch, Plan
from anubis.ports.engine import Capabilities
from anubis.stages.planning import (
    inference,
    machines,
    message_passing,
    parameter_server,
    programs,
    single,
    sources,
)
from anubis.stages.planning.layout import Draft, LayingOut, Task
from anubis.stages.planning.place import Context, Place

__all__ = ["Context", "plan"]

_STRATEGIES: Final[Mapping[Strategy, LayingOut]] = {
    Strategy.SINGLE_NODE: single,
    Strategy.INFERENCE: inference,
    Strategy.HOROVOD: message_passing,
    Strategy.MXNET_PARAMETER_SERVER: parameter_server,
}
"""Who lays out what."""


def plan(descriptor: Descriptor, capabilities: Capabilities, context: Context) -> Plan:
    """Plan a run.

    Raises UserError if the engine cannot do what the descriptor asks for, naming every field.
    """
    if capabilities.has_machines:
        descriptor = machines.equipped(descriptor)
    asked = _asked(descriptor, context.directory)
    fetches = sources.joined([fetch for _, fetches in asked for fetch in fetches])
    data, models = (sources.placed(wanted, own, fetches) for wanted, own in asked)
    script = context.script or (descriptor.ml.script.script if descriptor.ml.script else "")
    place = Place(capabilities=capabilities, context=context, script=script)
    task = Task(descriptor=descriptor, place=place, data=data, models=models)
    strategy = _STRATEGIES[descriptor.hardware.strategy]
    obstacles = [
        *_obstacles_of_strategy(descriptor.hardware.strategy, capabilities),
        *_obstacles_of_draft(strategy.draft(task), place),
        *(machines.obstacles(descriptor) if capabilities.has_machines else ()),
        *sources.obstacles(*asked[0], data),
        *sources.obstacles(*asked[1], models),
    ]
    if obstacles:
        raise UserError("\n".join(obstacles))
    layout = strategy.layout(task)
    return Plan(
        units=layout.units,
        deciding=layout.deciding,
        limits=descriptor.limits,
        metrics=layout.metrics,
        fetches=fetches,
        files=layout.files,
        needs_keys=layout.needs_keys,
        labels=dict(descriptor.info.labels),
    )


Asked = tuple[Sequence[Source], Sequence[Fetch]]


def _asked(descriptor: Descriptor, directory: str) -> tuple[Asked, Asked]:
    """The data of the benchmark and the models of the server, where there is one."""
    server = descriptor.server if descriptor.hardware.strategy is Strategy.INFERENCE else None
    wanted = {
        "data.sources": descriptor.data.sources,
        "server.models": server.models if server else (),
    }
    data, models = (
        (found, [sources.fetch_of(one, f"{field}[{n}]", directory) for n, one in enumerate(found)])
        for field, found in wanted.items()
    )
    return data, models


def _obstacles_of_strategy(strategy: Strategy, capabilities: Capabilities) -> Iterator[str]:
    if strategy not in capabilities.strategies:
        possible = ", ".join(sorted(capabilities.strategies)) or "nothing"
        yield (
            f"hardware.strategy: the engine '{capabilities.name}' cannot run '{strategy}', "
            f"only {possible}"
        )


def _obstacles_of_draft(draft: Draft, place: Place) -> Iterator[str]:
    yield from draft.obstacles
    yield from programs.obstacles(draft.programs, place)
