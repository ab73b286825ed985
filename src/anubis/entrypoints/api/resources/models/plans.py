"""What a run would be made of."""

from __future__ import annotations

from typing import Any

from anubis.entrypoints.api.resources.models.kinds import Answer, Count
from anubis.entrypoints.api.resources.models.problems import DescriptorProblem
from anubis.entrypoints.api.resources.models.runs import Demand


class Mount(Answer):
    """Something of the machine that a unit sees in its own file system."""

    source: str
    target: str
    read_only: bool


class Resources(Answer):
    """What a unit may use, where the engine can enforce it."""

    cpus: float | None
    """Null: all."""
    memory_bytes: Count | None
    """Null: all."""
    requested_cpus: float | None
    """That must be free where it starts, though it may use more. Null: nothing in particular."""
    requested_memory_bytes: Count | None
    """Likewise."""
    gpus: Count
    extended_shm: bool
    privileged: bool
    ulimits: dict[str, int]
    """-1: no limit."""


class Toleration(Answer):
    """A taint of machines that a unit does not mind."""

    key: str
    """Empty, with the operator Exists: every taint."""
    operator: str
    """Equal or Exists."""
    value: str
    effect: str
    """Empty: each."""


class Placement(Answer):
    """Where among many machines a unit may run, and as whom. Null: as the installation says."""

    instance_type: str | None
    zone: str | None
    exclusive: bool
    """Whether no other benchmark may be on the same machine."""
    node_selector: dict[str, str]
    tolerations: list[Toleration]
    annotations: dict[str, str]
    service_account: str | None
    pull_secrets: list[str]
    priority_class: str | None
    runtime_class: str | None


class Probe(Answer):
    """A question that a unit must answer, again and again."""

    kind: str
    """http, https or tcp."""
    port: Count
    """As the unit declares it."""
    path: str
    initial_delay_seconds: float
    period_seconds: float
    timeout_seconds: float
    success_threshold: Count
    failure_threshold: Count


class Unit(Answer):
    """One program."""

    name: str
    image: str | None
    command: list[str]
    """Empty: what the image does by itself."""
    arguments: list[str]
    """For what the image does by itself."""
    environment: dict[str, str]
    """What we set. The environment that processes inherit is not shown."""
    directory: str | None
    script: str | None
    """The archive of code that it gets."""
    mounts: list[Mount]
    resources: Resources
    placement: Placement | None
    """Null: wherever the engine likes."""
    cpu_affinity: list[int]
    niceness: int
    ports: list[int]
    after: list[str]
    """Units that must be ready before it is started."""
    readiness: Probe | None
    liveness: Probe | None
    is_service: bool
    """Whether it must live until the deciding unit has ended."""
    decides: bool
    """Whether its end decides the outcome."""


class Fetched(Answer):
    """Data that must be here before any unit starts."""

    field: str
    """Where the descriptor asks for it."""
    uri: str
    """Without its query."""
    checksum: str | None
    unpack: bool


class Definition(Answer):
    """A metric to be found in the output."""

    name: str
    units: str
    pattern: str
    unit: str | None
    """Null: of all units."""


class Plan(Answer):
    """What a run would be made of. What only the engine will know is in angle brackets."""

    engine: str
    units: list[Unit]
    demand: Demand
    """What all units together must find free."""
    fetches: list[Fetched]
    files: dict[str, str]
    """Small files that units need, by name."""
    metrics: list[Definition]


class Planned(Answer):
    """A plan, and what the author should know about the descriptor."""

    plan: Plan
    warnings: list[DescriptorProblem]


class Manifested(Answer):
    """What Kubernetes would get for a run."""

    objects: list[dict[str, Any]]
    """As Kubernetes has them, in the order in which they would be applied."""
    notes: list[str]
    """What is only supposed, since no cluster said it."""
    warnings: list[DescriptorProblem]
