"""What a service says about itself and about what it was asked: values of this client alone.

Runs, events, metrics, schedules and tokens are those of ``anubis.domain``.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from anubis.domain.access import Role, TokenId
from anubis.domain.demand import Capacity
from anubis.domain.problem import Problem
from anubis.domain.run import Run
from anubis.domain.schedule import Schedule
from anubis.stages.presentation.plan_shapes import PlanShape


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A run that is now durable, and what its author should know about the descriptor."""

    run: Run
    warnings: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Scheduled:
    """A schedule that is now durable, and what its author should know about the descriptor."""

    schedule: Schedule
    warnings: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the service thinks of a descriptor."""

    is_valid: bool
    problems: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """What a run would be made of, and what its author should know about the descriptor."""

    plan: PlanShape
    warnings: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Manifested:
    """What Kubernetes would get for a run, and what its author should know."""

    objects: tuple[dict[str, object], ...]  #: in the order in which they would be applied
    notes: tuple[str, ...] = ()  #: what is only supposed, since no cluster said it
    warnings: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """As whom the service sees us."""

    user: str
    role: Role
    token: TokenId | None = None
    requires_tokens: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """That the service lives, and since when."""

    status: str
    version: str
    started_at: datetime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EngineReport:
    """What an engine of the service can do, and how busy it is."""

    name: str
    strategies: tuple[str, ...]
    needs_image: bool
    is_healthy: bool
    detail: str
    capacity: Capacity
    in_use: Capacity
    waiting: int
