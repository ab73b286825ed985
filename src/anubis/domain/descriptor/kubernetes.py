"""What a benchmark asks of a cluster: ``[kubernetes]``. Other engines have no use for it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from anubis.domain.descriptor.workload import no_variables
from anubis.domain.plan import Toleration


class TolerationOperator(enum.StrEnum):
    """How a toleration is compared with a taint."""

    EQUAL = "Equal"  #: key and value
    EXISTS = "Exists"  #: the key alone, or any taint without a key


class TaintEffect(enum.StrEnum):
    """What a taint does to those that do not tolerate it."""

    ANY = ""
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kubernetes:
    """``[kubernetes]``: for all programs of a run."""

    node_selector: Mapping[str, str] = dataclasses.field(default_factory=no_variables)
    tolerations: tuple[Toleration, ...] = ()
    annotations: Mapping[str, str] = dataclasses.field(default_factory=no_variables)
    service_account: str = ""  #: empty: as the installation says
    image_pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""
    runtime_class: str = ""
