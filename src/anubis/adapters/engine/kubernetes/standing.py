"""Where a unit stands, from its pod and its workload, in words a person can act on.

Pure: the same objects at the same time give the same answer, before and after a restart of the
service, since all times are those that the cluster wrote down. How long a unit may wait for what is
decided in ``waiting``, who took a pod away in ``parting``; what events add is in ``explaining``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from anubis.adapters.engine.kubernetes import parting, phrasing, waiting
from anubis.adapters.engine.kubernetes.parting import Parting, node_of
from anubis.adapters.engine.kubernetes.stances import Exited as Exited
from anubis.adapters.engine.kubernetes.stances import Failed as Failed
from anubis.adapters.engine.kubernetes.stances import Gone as Gone
from anubis.adapters.engine.kubernetes.stances import Running as Running
from anubis.adapters.engine.kubernetes.stances import Seen as Seen
from anubis.adapters.engine.kubernetes.stances import Standing as Standing
from anubis.adapters.engine.kubernetes.stances import Wait as Wait
from anubis.adapters.engine.kubernetes.stances import Waiting as Waiting
from anubis.adapters.engine.kubernetes.viewing import BENCHMARK, FETCH, RECORDER, Phase, Termination
from anubis.adapters.engine.kubernetes.viewing import JobView as JobView
from anubis.adapters.engine.kubernetes.viewing import PodView as PodView
from anubis.adapters.engine.kubernetes.viewing import job_view as job_view
from anubis.adapters.engine.kubernetes.viewing import mpi_job_view as mpi_job_view
from anubis.adapters.engine.kubernetes.viewing import pod_view as pod_view
from anubis.adapters.engine.process.guardian import container_state
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits

LEAVING: Final = timedelta(minutes=2)
"""How long, beside its grace, a program may still be told to run after its pod was deleted. Nodes
that live answer within seconds; of one that does not, nothing more will be heard."""

_NOT_EXECUTED: Final = ("StartError", "ContainerCannotRun")
_OUTDATED: Final = (
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "TaintToleration",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
)
"""Why nodes reject pods that the scheduler gave them: it knew an older state of the node."""

_UNKNOWN_END: Final = "ContainerStatusUnknown"  #: the node forgot the container and invents an exit
_FETCH_CAUSES: Final[Mapping[str, EndCause]] = {
    cause.value: cause for cause in (EndCause.DATA_INVALID, EndCause.NOT_BROUGHT)
}


def stand(
    pods: Sequence[PodView], workload: JobView | None, seen: Seen, now: datetime, limits: Limits
) -> Standing:
    """Where a unit stands whose pods and workload are these now."""
    pod = _newest(pods)
    if pod is None:
        return _podless(workload, seen, now, limits)
    leaving = parting.parting(pod, workload, seen.workload)
    standing = _with_pod(pod, leaving, seen, now, limits)
    return standing if len(pods) == 1 else _of_several(standing, pod, len(pods))


def remembered(seen: Seen, pods: Sequence[PodView], workload: JobView | None) -> Seen:
    """What is known of a unit after another look at it."""
    if workload is not None and workload.name:
        seen = dataclasses.replace(seen, workload=workload.name)
    pod = _newest(pods)
    if pod is None:
        return seen
    leaving = parting.parting(pod, workload, seen.workload)
    return dataclasses.replace(
        seen, pod=pod.name or seen.pod, node=pod.node or seen.node, parting=leaving or seen.parting
    )


def _newest(pods: Sequence[PodView]) -> PodView | None:
    beginning = datetime.min.replace(tzinfo=UTC)
    return max(pods, key=lambda pod: (pod.created_at or beginning, pod.name), default=None)


def _of_several(standing: Standing, pod: PodView, count: int) -> Standing:
    """No workload of ours makes two pods for one unit; where there are, somebody should know."""
    words = f" ({count} pods exist for it; this is of the newest, {pod.name})"
    match standing:
        case Waiting():
            return dataclasses.replace(standing, detail=f"{standing.detail}{words}".strip())
        case Running():
            return dataclasses.replace(standing, trouble=f"{standing.trouble}{words}".strip())
        case _:
            return dataclasses.replace(standing, message=f"{standing.message}{words}".strip())


def _podless(workload: JobView | None, seen: Seen, now: datetime, limits: Limits) -> Standing:
    """A unit without a pod: not yet, or no longer."""
    if seen.pod:
        return _vanished(workload, seen)
    if workload is None and seen.workload:
        return Gone(message=f"somebody deleted its workload {seen.workload}")
    if workload is not None:
        if workload.deleting_since is not None:
            return Gone(message=f"somebody deleted its {workload.kind} {workload.name}")
        if (end := _ended_unseen(workload, now)) is not None:
            return end
    created = (workload.created_at if workload else None) or seen.created_at
    return waiting.without_pod(workload, created, now, limits)


def _vanished(workload: JobView | None, seen: Seen) -> Gone:
    """A pod that was there before. ``PodView`` knows how a pod goes; there is none any more."""
    ghost = PodView(name=seen.pod, node=seen.node, deleting_since=seen.created_at)
    leaving = seen.parting or parting.parting(ghost, workload, seen.workload)
    assert leaving is not None, "a pod that is being deleted is being taken away"
    return Gone(cause=leaving.cause, message=leaving.message)


def _ended_unseen(workload: JobView, now: datetime) -> Failed | None:
    """A workload that has ended, and of whose pod nothing was ever seen."""
    failure = workload.failure
    if failure is not None:
        late = failure.reason == "DeadlineExceeded"
        cause = EndCause.TIMED_OUT if late else EndCause.LOST
        words = f"its {workload.kind} failed: {failure.reason}: {phrasing.plain(failure.message)}"
        return Failed(cause=cause, message=words, at=failure.at or now)
    if workload.is_complete:
        words = f"its {workload.kind} is complete, and its pod was never seen"
        return Failed(cause=EndCause.LOST, message=words, at=now)
    return None


def _with_pod(
    pod: PodView, leaving: Parting | None, seen: Seen, now: datetime, limits: Limits
) -> Standing:
    program = pod.container(BENCHMARK)
    if program.ended is not None:
        return _ended(pod, program.ended, leaving, now)
    if (failed := _not_brought(pod, leaving, now)) is not None:
        return failed
    if program.phase is Phase.RUNNING and not pod.is_over:
        since = program.started_at or now
        return _running(pod, leaving, since, now, limits)
    if leaving is not None:
        return Failed(cause=leaving.cause, message=leaving.message, at=leaving.at or now)
    if pod.is_over:
        return _refused(pod, now)
    return waiting.with_pod(pod, seen.created_at, now, limits)


def _ended(pod: PodView, ended: Termination, leaving: Parting | None, now: datetime) -> Standing:
    """The container of the unit is over."""
    at = ended.finished_at or now
    taken = leaving if leaving is not None and leaving.is_behind(ended.finished_at) else None
    if ended.reason in _NOT_EXECUTED:
        words = container_state.explained(_runtime(ended.message) or ended.reason)
        return Failed(cause=EndCause.NOT_STARTED, message=words, at=at)
    if ended.reason == _UNKNOWN_END:
        lost = f"{node_of(pod)} forgot its container: {phrasing.plain(ended.message)}"
        taken = leaving or Parting(cause=EndCause.LOST, message=lost)
        return Failed(cause=taken.cause, message=taken.message, at=at)
    code, signal = _exit(ended)
    starved = ended.reason == "OOMKilled" and code != 0
    usual = EndCause.OUT_OF_MEMORY if starved else EndCause.EXITED
    return Exited(
        exit_code=code,
        signal=signal,
        out_of_memory=starved,
        at=at,
        started_at=ended.started_at,
        cause=taken.cause if taken else usual,
        message=taken.message if taken else "",
        has_recorder=not pod.is_over,
    )


def _runtime(words: str) -> str:
    """Why a program could not be executed, without the names of all who passed that on."""
    said = phrasing.plain(words).removesuffix(": unknown")
    return said.rpartition("unable to start container process: ")[2]


def _exit(ended: Termination) -> tuple[int | None, int | None]:
    """Exit code and signal, of which one is None."""
    if ended.signal is not None:
        return None, ended.signal
    return (None, None) if ended.exit_code is None else container_state.exit_of(ended.exit_code)


def _running(
    pod: PodView, leaving: Parting | None, since: datetime, now: datetime, limits: Limits
) -> Running | Failed:
    if leaving is None:
        return Running(since=since, trouble=_silence(pod))
    asked_at = leaving.at or pod.deleting_since or since
    if now - asked_at >= limits.grace + LEAVING:
        words = f"{leaving.message}; {node_of(pod)} has not said since then that it ended"
        return Failed(cause=EndCause.LOST, message=words, at=asked_at + limits.grace + LEAVING)
    return Running(since=since, trouble=leaving.message, leaving=leaving)


def _silence(pod: PodView) -> str:
    """Whether its node is silent: then not the node, which told of its containers, but the cluster
    says that it is not ready.
    """
    ready, containers = pod.condition("Ready"), pod.condition("ContainersReady")
    if ready is None or containers is None:
        return ""
    is_contradicted = ready.status != "True" and containers.status == "True"
    return f"{node_of(pod)} does not answer" if is_contradicted else ""


def _not_brought(pod: PodView, leaving: Parting | None, now: datetime) -> Failed | None:
    """What came of the container ``fetch``, if it has failed by itself."""
    ended = pod.container(FETCH).ended
    if ended is None or ended.exit_code == 0:
        return None
    if leaving is not None and leaving.is_behind(ended.finished_at):
        return None
    cause, words = _last_words(ended)
    return Failed(cause=cause, message=words, at=ended.finished_at or now)


def _last_words(ended: Termination) -> tuple[EndCause, str]:
    """Cause and message that ``fetch`` left behind, or what can be said without."""
    try:
        left = json.loads(ended.message)
    except ValueError:
        left = None
    if isinstance(left, dict) and isinstance(left.get("message"), str):
        cause = _FETCH_CAUSES.get(str(left.get("cause")), EndCause.NOT_BROUGHT)
        return cause, left["message"][: phrasing.MOST]
    if ended.reason == "OOMKilled":
        return EndCause.NOT_BROUGHT, "fetching ran out of memory and was killed"
    how = f"fetching failed: {ended.reason or 'Error'}, exit code {ended.exit_code}"
    return EndCause.NOT_BROUGHT, f"{how}: {phrasing.plain(ended.message)}".removesuffix(": ")


def _refused(pod: PodView, now: datetime) -> Failed:
    """A pod that is over, and whose program never began."""
    for container in pod.containers:
        if container.name in (FETCH, RECORDER) or container.ended is None:
            continue
        if container.ended.exit_code:
            words = f"the container {container.name}, which runs before it, exited with code"
            message = f"{words} {container.ended.exit_code}"
            return Failed(cause=EndCause.NOT_STARTED, message=message, at=now)
    if not pod.reason and not pod.message:
        words = f"its pod is over ({pod.phase}), and nothing is known of its program"
        return Failed(cause=EndCause.LOST, message=words, at=now)
    is_full = pod.reason.startswith("OutOf")
    verb = "has no more room for it" if is_full else "did not take it"
    said = f"{pod.reason}: {phrasing.plain(pod.message)}".removesuffix(": ")
    cause = EndCause.EVICTED if is_full or pod.reason in _OUTDATED else EndCause.NOT_STARTED
    return Failed(cause=cause, message=f"{node_of(pod)} {verb}: {said}", at=now)
