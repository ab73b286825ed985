"""How a pod is taken away before its program has ended by itself, and by whom.

Pods are deleted, evicted, preempted, lost with their nodes. Kubernetes says so in several places,
of which the most telling counts: a Job's condition, the pod's reason, its condition
``DisruptionTarget``, and last the mere fact that somebody deleted it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from anubis.adapters.engine.kubernetes import phrasing
from anubis.adapters.engine.kubernetes.viewing import JobView, PodView
from anubis.domain.observation import EndCause


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Parting:
    """A pod that is being taken away, or was."""

    cause: EndCause
    message: str
    at: datetime | None = None  #: what ended before then ended by itself; None: nobody knows

    def is_behind(self, ended_at: datetime | None) -> bool:
        """Whether it may be why something ended. The API tells times in whole seconds."""
        return self.at is None or ended_at is None or ended_at >= self.at


_BY_REASON: Final[Mapping[str, tuple[EndCause, str]]] = {
    "Evicted": (EndCause.EVICTED, "{node} evicted it"),
    "Preempting": (EndCause.EVICTED, "{node} needed its place for a pod the cluster cannot miss"),
    "Preempted": (EndCause.EVICTED, "a pod of higher priority took its place on {node}"),
    "Terminated": (EndCause.EVICTED, "{node} was shut down"),
    "NodeShutdown": (EndCause.EVICTED, "{node} was shut down"),
    "Shutdown": (EndCause.EVICTED, "{node} was shut down"),
    "NodeLost": (EndCause.LOST, "{node} no longer answers"),
    "DeadlineExceeded": (EndCause.TIMED_OUT, "its pod was active longer than its deadline"),
}
"""Reasons of pods, as kubelets and controllers write them."""

_BY_DISRUPTION: Final[Mapping[str, tuple[EndCause, str]]] = {
    "PreemptionByScheduler": (
        EndCause.EVICTED,
        "a pod of higher priority took its place on {node}",
    ),
    "DeletionByTaintManager": (
        EndCause.EVICTED,
        "{node} no longer answers, or was given a taint that it does not tolerate",
    ),
    "EvictionByEvictionAPI": (EndCause.EVICTED, "it was evicted from {node}, as by a drain"),
    "TerminationByKubelet": (EndCause.EVICTED, "{node} ended it"),
    "DeletionByPodGC": (EndCause.LOST, "{node} no longer exists"),
}
"""Reasons of the condition ``DisruptionTarget``."""


def parting(pod: PodView, workload: JobView | None, name: str) -> Parting | None:
    """How a pod is taken away, if it is. ``name``: of its workload, if that was seen before."""
    return (
        _by_deadline(workload)
        or _by_reason(pod)
        or _by_disruption(pod)
        or _by_deletion(pod, workload, name)
        or _by_silence(pod)
    )


def _by_deadline(workload: JobView | None) -> Parting | None:
    failure = workload.failure if workload else None
    if workload is None or failure is None or failure.reason != "DeadlineExceeded":
        return None
    words = f"its {workload.kind} was active longer than its deadline"
    earlier = workload.condition("FailureTarget") or failure
    return Parting(cause=EndCause.TIMED_OUT, message=words, at=earlier.at)


def _by_reason(pod: PodView) -> Parting | None:
    known = _BY_REASON.get(pod.reason)
    if known is None:
        return None
    message = _said(known[1].format(node=node_of(pod)), pod.message)
    return Parting(cause=known[0], message=message)


def _by_disruption(pod: PodView) -> Parting | None:
    target = pod.condition("DisruptionTarget")
    if target is None or target.status != "True":
        return None
    cause, words = _BY_DISRUPTION.get(target.reason, (EndCause.EVICTED, "{node} gave it up"))
    message = _said(words.format(node=node_of(pod)), target.message)
    return Parting(cause=cause, message=message, at=target.at)


def _by_deletion(pod: PodView, workload: JobView | None, name: str) -> Parting | None:
    if pod.deleting_since is None:
        return None
    cause, message = _deleted(pod, workload, name)
    return Parting(cause=cause, message=message, at=pod.deleting_since)


def _deleted(pod: PodView, workload: JobView | None, name: str) -> tuple[EndCause, str]:
    if workload is None:
        what = f"workload {name}" if name else f"pod {pod.name}"
        return EndCause.LOST, f"somebody deleted its {what}"
    owner = f"{workload.kind} {workload.name}"
    if workload.deleting_since is not None:
        return EndCause.LOST, f"somebody deleted its {owner}"
    if workload.is_suspended:
        return EndCause.EVICTED, f"its {owner} was suspended{by_queue(workload)}"
    if workload.makes_many and _is_older(workload, pod):
        return EndCause.DISMISSED, f"the other pods of its {owner} had ended"
    return EndCause.LOST, f"somebody deleted its pod {pod.name}"


def _is_older(workload: JobView, pod: PodView) -> bool:
    """Whether a workload had ended when its pod was deleted. Its controller deletes all pods then;
    if it ended later, it did so because somebody had deleted the pod.
    """
    kinds = ("FailureTarget", "SuccessCriteriaMet", "Failed", "Complete", "Succeeded")
    ended = workload.condition(*kinds)
    if ended is None or ended.at is None or pod.deleting_since is None:
        return False
    return ended.at <= pod.deleting_since


def _by_silence(pod: PodView) -> Parting | None:
    if pod.phase != "Unknown":
        return None
    return Parting(cause=EndCause.LOST, message=f"{node_of(pod)} no longer answers")


def by_queue(workload: JobView) -> str:
    """Who may have suspended a workload."""
    return f" by the queue {workload.queue}" if workload.queue else ""


def node_of(pod: PodView) -> str:
    """Its node, for people."""
    return f"node {pod.node}" if pod.node else "its node"


def _said(words: str, foreign: str) -> str:
    return f"{words}: {phrasing.plain(foreign)}" if foreign.strip() else words
