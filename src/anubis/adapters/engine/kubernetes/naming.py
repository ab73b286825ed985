"""How what belongs to a run is called in a cluster, and what it bears so that it is found again.

Names have an end of the run's id in them, for its beginning is the time, which many runs share.
Labels have the whole id. What users say becomes a label too, made legal where it must be.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Final

from anubis.domain.plan import Plan
from anubis.domain.run import RunId

INSTALLATION: Final = "anubis.dev/installation"
RUN: Final = "anubis.dev/run"
UNIT: Final = "anubis.dev/unit"
"""The unit of a pod; where one template makes several pods, what their names have in common."""

BESIDE: Final = "anubis.dev/beside"
"""On pods that do little: the run whose programs they may be beside, though each has a node."""

SUBMITTER: Final = "anubis.dev/submitter"
VERBATIM: Final = "anubis.dev/labels"
"""Annotations that hold what labels cannot."""

COMPONENT: Final = "app.kubernetes.io/component"
BENCHMARK: Final = "benchmark"

COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""What the pods of an Indexed Job bear."""

REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
"""What the workers of an MPIJob bear."""

LONGEST_UNIT: Final = 30
"""So that a name with the index of a pod and the random end of its name stays below 63 signs, which
is all that a label or a host name may have."""

ACTION: Final = "action-id"
CLIENT: Final = "client-id"
PARENT: Final = "parent-action-id"
CREATOR: Final = "created-by"
"""As the original had them: the run, who submitted it, the schedule that fired it, and who made the
objects. Only runs that a schedule fired bear the third."""

_OURS: Final = frozenset({ACTION, CLIENT, PARENT, CREATOR})
_FOREIGN: Final = frozenset({"job-name", "controller-uid"})
"""Labels that controllers set themselves."""

_DNS: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_OTHER: Final = re.compile(r"[^-A-Za-z0-9_.]")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """How what belongs to one run of one installation is called."""

    installation: str  #: as our labels have it
    namespace: str
    run_id: RunId

    @property
    def run(self) -> str:
        """What all names of the run begin with."""
        return f"anubis-{self.run_id.replace('-', '')[-12:]}"

    def job(self, unit: str) -> str:
        """The Job of a unit, or of several of which this is the name they have in common."""
        return f"{self.run}-{unit}"

    @property
    def mpi_job(self) -> str:
        """The MPIJob of a run. The operator gives the same name to a Service that it makes."""
        return self.run

    @property
    def service(self) -> str:
        """Below which the units of a run find each other."""
        return self.run

    @property
    def secret(self) -> str:
        """What holds the files and keys of a run."""
        return self.run

    def code(self, number: int) -> str:
        """The Secret with a part of what was submitted beside the descriptor."""
        return f"{self.run}-code-{number}"

    def labels(self, unit: str = "") -> dict[str, str]:
        """What our things bear."""
        mine = {
            "app.kubernetes.io/name": "anubis",
            "app.kubernetes.io/managed-by": "anubis",
            COMPONENT: BENCHMARK,
            INSTALLATION: self.installation,
            RUN: self.run_id,
            ACTION: self.run_id,
            CREATOR: "anubis",
        }
        return {**mine, UNIT: unit} if unit else mine

    @property
    def selector(self) -> str:
        """All that belongs to the run."""
        return f"{of_installation(self.installation)},{RUN}={self.run_id}"


def of_installation(installation: str) -> str:
    """The selector of all that belongs to an installation."""
    return f"{INSTALLATION}={installation}"


def unit_of(labels: Mapping[str, str]) -> tuple[RunId, str] | None:
    """Which unit of which run a pod with these labels is; None if it is not one of ours."""
    run, unit = labels.get(RUN), labels.get(UNIT)
    if not run or not unit:
        return None
    index = labels.get(COMPLETION_INDEX, labels.get(REPLICA_INDEX))
    return RunId(run), unit if index is None else f"{unit}-{index}"


def given_labels(plan: Plan) -> dict[str, str]:
    """What users say of a run, as labels, and who they are. What only we or controllers may say is
    not among it, whether or not we say it of this run.
    """
    said = {label_key(key): label_value(value) for key, value in plan.labels.items()}
    kept = {key: said[key] for key in said if key and key not in _OURS | _FOREIGN}
    known = {CLIENT: plan.submitter, PARENT: plan.schedule}
    return {**kept, **{key: label_value(value) for key, value in known.items() if value}}


def given_annotations(plan: Plan) -> dict[str, str]:
    """The same as it was said, where labels do not tell it."""
    said = {SUBMITTER: plan.submitter} if plan.submitter else {}
    labels = given_labels(plan)
    if any(labels.get(key) != value for key, value in plan.labels.items()):
        said[VERBATIM] = json.dumps(dict(plan.labels), ensure_ascii=False)
    return said


def label_key(text: str) -> str:
    """A legal key of a label without a prefix, for prefixes belong to those who own the name."""
    return label_value(text)


def label_value(text: str) -> str:
    """A legal value of a label, as near to a text as it can be; empty if nothing of it is legal."""
    return _OTHER.sub("_", text)[:63].strip("-_.")


def is_host_name(text: str) -> bool:
    """Whether units can be found by this name, alone and behind the name of their run."""
    return len(text) <= LONGEST_UNIT and _DNS.fullmatch(text) is not None
