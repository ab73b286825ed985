"""Make a run out of a plan and store it. When ``submit`` returns, the run is never lost."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from datetime import timedelta

from anubis.domain import identity
from anubis.domain import plan as plans
from anubis.domain.demand import Demand
from anubis.domain.document import Document
from anubis.domain.plan import Plan
from anubis.domain.run import Run, RunId, RunState
from anubis.ports.clock import Clock
from anubis.ports.run_store import RunStore

PATIENCE = timedelta(hours=1)
"""How long a run may stay SUBMITTED. A living runtime takes it within milliseconds; after an
hour without one, a person should hear about it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a user wants to run."""

    document: Document
    plan: Plan
    benchmark: str
    engine: str
    labels: Mapping[str, str]
    submitter: str
    key: str | None = None  #: chosen by the submitter: the same key never makes a second run
    family: str | None = None
    priority: int = 0
    demand: Demand = dataclasses.field(default_factory=Demand)
    id: RunId | None = None  #: chosen beforehand: submitting it again makes no second run
    occasion: str = ""  #: why it is submitted, if not for the submitter's own asking


async def submit(request: Request, store: RunStore, clock: Clock) -> Run:
    """Store the run in SUBMITTED, and give it; the one that is there already for its key, if so."""
    now = clock.now()
    run = Run(
        id=request.id or identity.run_id(now, secrets.token_bytes(8)),
        state=RunState.SUBMITTED,
        version=1,
        benchmark=request.benchmark,
        engine=request.engine,
        descriptor_sha=request.document.sha,
        submitter=request.submitter,
        labels=tuple(sorted(request.labels.items())),
        family=request.family,
        priority=request.priority,
        demand=request.demand,
        submitted_at=now,
        state_since=now,
        deadline=now + PATIENCE,
    )
    message = f"submitted {request.document.name} for the {request.engine} engine"
    if request.document.script:
        message += f" with the code {request.document.script[:12]}"
    if request.occasion:
        message += f" {request.occasion}"
    plan = plans.to_json(request.plan)
    return await store.add(run, request.document, plan, message, key=request.key)
