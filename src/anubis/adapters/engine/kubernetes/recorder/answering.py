"""Ask a server in the pod whether it is ready and alive, and hand on how it answers.

With the same questions and the same meaning as every engine (``adapters.engine.probing``). That
needs an event loop, which takes some megabytes and a tenth of a second to load: so this module is
loaded only for units that have probes, and runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping

from anubis.adapters.engine import probing
from anubis.adapters.engine.kubernetes.recorder.specifying import Spec
from anubis.adapters.engine.kubernetes.recording import Kind, packed_json
from anubis.domain import plan
from anubis.domain.observation import Condition, UnitReady, UnitSilent

Tell = Callable[[bytes], None]
"""Takes a frame for the journal, from any thread."""


def begin(spec: Spec, tell: Tell) -> None:
    """Ask from now on, until this process ends."""
    unit = plan.Unit(
        name=spec.unit,
        command=(),
        environment={},
        readiness=_probe(spec.readiness),
        liveness=_probe(spec.liveness),
    )
    threading.Thread(
        target=lambda: asyncio.run(_ask(unit, tell)), name="probes", daemon=True
    ).start()


def _probe(told: Mapping[str, object] | None) -> plan.Probe | None:
    return plan.probe_from_json(told) if told else None


async def _ask(unit: plan.Unit, tell: Tell) -> None:
    async for condition in probing.conditions(unit, lambda port: ("127.0.0.1", port)):
        tell(_frame(condition))


def _frame(condition: Condition) -> bytes:
    at_ns = int(condition.at.timestamp() * 1e9)
    if isinstance(condition, UnitReady):
        return packed_json(Kind.CONDITION, {"condition": "ready"}, at_ns)
    word = "silent" if isinstance(condition, UnitSilent) else "unready"
    told = {"condition": word, "message": condition.message}
    return packed_json(Kind.CONDITION, told, at_ns)
