"""What a unit waits for that does not run yet, and how long it may.

No state lasts for ever. Each thing that a unit waits for has a limit, counted from times that the
cluster wrote down, so that it holds over restarts of the service; what cannot get better by itself
ends within ``PATIENCE``.
"""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime, timedelta
from typing import Final

from anubis.adapters.engine.kubernetes import phrasing, unscheduled
from anubis.adapters.engine.kubernetes.parting import by_queue, node_of
from anubis.adapters.engine.kubernetes.stances import Failed, Wait, Waiting
from anubis.adapters.engine.kubernetes.viewing import (
    BENCHMARK,
    FETCH,
    RECORDER,
    ContainerView,
    JobView,
    Phase,
    PodView,
    Termination,
)
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits

PATIENCE: Final = timedelta(minutes=2)
"""For what only a person can mend, as an image that does not exist. Not at once, because an image,
or a Secret, may be on its way."""

CRASHES: Final = 5
"""Starts of a recorder until it counts as broken: two to three minutes."""

_PULLS: Final = (
    "ErrImagePull",
    "ImagePullBackOff",
    "RegistryUnavailable",
    "ImageInspectError",
    "SignatureValidationFailed",
)
_NO_IMAGE: Final = ("InvalidImageName", "ErrImageNeverPull")  #: trying again gives the same
_CREATING: Final = ("", "ContainerCreating", "PodInitializing")
_HOPELESS: Final = re.compile(
    r"not found|404|denied|unauthorized|authentication required|forbidden|401|403"
    r"|insufficient_scope|manifest unknown|no basic auth|no match for platform"
    r"|invalid reference|does not exist|signature",
    re.IGNORECASE,
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """Something to wait for, and what its being late means."""

    why: Wait
    since: datetime
    what: str
    limit: timedelta
    cause: EndCause
    verdict: str = ""  #: what to say when the limit has passed; as while waiting if empty
    detail: str = ""


def without_pod(
    workload: JobView | None, created_at: datetime, now: datetime, limits: Limits
) -> Waiting | Failed:
    """A unit of which no pod was ever seen."""
    if workload is not None and workload.is_suspended:
        return _judged(_suspended(workload, created_at, limits), now)
    resumed = workload and next((c for c in workload.conditions if c.type == "Suspended"), None)
    kind = workload.kind if workload else "Job"
    step = _Step(
        why=Wait.POD,
        since=(resumed.at if resumed else None) or created_at,
        what=f"waiting for the cluster to make the pod of its {kind}",
        limit=limits.capacity,
        cause=EndCause.NO_CAPACITY,
        verdict=f"the cluster made no pod of its {kind}",
    )
    return _judged(step, now)


def with_pod(pod: PodView, created_at: datetime, now: datetime, limits: Limits) -> Waiting | Failed:
    """A unit whose pod is there, and whose program has not begun."""
    since = pod.created_at or created_at
    if not pod.node:
        return _judged(_unscheduled(pod, since, limits), now)
    scheduled = pod.condition("PodScheduled")
    return _judged(_on_node(pod, (scheduled and scheduled.at) or since, limits), now)


def _judged(step: _Step, now: datetime) -> Waiting | Failed:
    waited = now - step.since
    if waited >= step.limit:
        words = step.verdict or f"{step.what}{': ' if step.detail else ''}{step.detail}"
        at = step.since + max(step.limit, timedelta())
        return Failed(cause=step.cause, message=words, at=at, why=step.why)
    return Waiting(
        why=step.why,
        since=step.since,
        what=step.what,
        lasting=phrasing.lasting(waited),
        detail=step.detail,
    )


def _suspended(workload: JobView, created_at: datetime, limits: Limits) -> _Step:
    condition = workload.condition("Suspended")
    held = f"its {workload.kind} {workload.name} is suspended{by_queue(workload)}"
    return _Step(
        why=Wait.QUEUE,
        since=(condition and condition.at) or created_at,
        what="waiting to be let into the cluster",
        detail=held,
        limit=limits.capacity,
        cause=EndCause.NO_CAPACITY,
        verdict=held,
    )


def _unscheduled(pod: PodView, since: datetime, limits: Limits) -> _Step:
    condition = pod.condition("PodScheduled")
    said = condition.message if condition else ""
    step = _Step(
        why=Wait.NODE,
        since=since,
        what="waiting for a node",
        limit=limits.capacity,
        cause=EndCause.NO_CAPACITY,
        verdict="the scheduler has not looked at it",
    )
    if pod.asks.gates or (condition and condition.reason == "SchedulingGated"):
        held = f"scheduling gates hold it back: {', '.join(pod.asks.gates) or said}"
        return dataclasses.replace(step, why=Wait.QUEUE, detail=held, verdict=held)
    if not said:
        return step
    reason = unscheduled.told(said, pod.asks)
    verdict = f"{reason} (the scheduler: {phrasing.plain(said)})"
    if pod.nominated_node:
        reason = f"pods of lower priority are leaving node {pod.nominated_node} for it"
    return dataclasses.replace(step, detail=reason, verdict=verdict)


def _on_node(pod: PodView, since: datetime, limits: Limits) -> _Step:
    """The first container that is not where it should be holds up all that come after it."""
    ready = pod.condition("PodReadyToStartContainers")
    is_prepared = ready is not None and ready.status == "True"
    if ready is not None and ready.at is not None and is_prepared:
        since = max(since, ready.at)
    for container in pod.containers:
        if container.name == BENCHMARK:
            break
        if not _is_passed(container):
            return _held(pod, container, since, limits, is_prepared=is_prepared)
        since, is_prepared = max(since, _passed_at(container) or since), True
    return _held(pod, pod.container(BENCHMARK), since, limits, is_prepared=is_prepared)


def _is_passed(container: ContainerView) -> bool:
    if container.is_sidecar:
        return container.phase is Phase.RUNNING and container.is_started
    return container.ended is not None and container.ended.exit_code == 0


def _passed_at(container: ContainerView) -> datetime | None:
    return container.ended.finished_at if container.ended else container.started_at


def _held(
    pod: PodView, container: ContainerView, since: datetime, limits: Limits, *, is_prepared: bool
) -> _Step:
    """What a container waits for that holds up its pod."""
    if container.name == RECORDER and _last_end(container) is not None:
        return _crashing(container, since, limits)
    if container.phase is Phase.RUNNING:
        return _working(container, since, limits)
    if container.reason in (*_PULLS, *_NO_IMAGE):
        return _not_pulled(container, since, limits)
    if container.reason not in _CREATING or container.phase is Phase.TERMINATED:
        return _not_created(pod, container, since, limits)
    if container.phase is Phase.UNKNOWN:
        return _unprepared(Wait.ADMISSION, pod, since, limits)
    if not is_prepared:
        return _unprepared(Wait.PREPARATION, pod, since, limits)
    return _pulling(container, since, limits)


def _unprepared(why: Wait, pod: PodView, since: datetime, limits: Limits) -> _Step:
    """A node that says nothing, or that has not made what all containers of a pod share."""
    what = f"waiting for {node_of(pod)} to begin with it"
    cause = EndCause.LOST
    if why is Wait.PREPARATION:
        what = f"{node_of(pod)} prepares its volumes and network"
        cause = EndCause.NOT_BROUGHT
    verdict = f"{what}; not done within limits.starting = {phrasing.spoken(limits.starting)}"
    return _Step(
        why=why, since=since, what=what, limit=limits.starting, cause=cause, verdict=verdict
    )


def _pulling(container: ContainerView, since: datetime, limits: Limits) -> _Step:
    image = _image(container)
    limit = phrasing.spoken(limits.pulling)
    return _Step(
        why=Wait.IMAGE,
        since=since,
        what=f"pulling {image}",
        limit=limits.pulling,
        cause=EndCause.IMAGE_UNAVAILABLE,
        verdict=f"{image} could not be pulled within limits.pulling = {limit}",
    )


def _not_pulled(container: ContainerView, since: datetime, limits: Limits) -> _Step:
    said = phrasing.registry(container.message).removeprefix(f"{container.image}: ")
    words = said or "the node cannot pull it"
    limit = limits.pulling
    if container.reason in _NO_IMAGE:
        limit = timedelta()
    elif _HOPELESS.search(said) or container.reason == "SignatureValidationFailed":
        limit = min(PATIENCE, limit)
    image = _image(container)
    return _Step(
        why=Wait.IMAGE,
        since=since,
        what=f"waiting for {image}",
        detail=words,
        limit=limit,
        cause=EndCause.IMAGE_UNAVAILABLE,
        verdict=f"{image}: {words}",
    )


def _not_created(pod: PodView, container: ContainerView, since: datetime, limits: Limits) -> _Step:
    ended = container.ended
    said = container.message or (f"exit code {ended.exit_code}" if ended else "")
    words = f"{container.reason or 'failed'}: {phrasing.plain(said)}".removesuffix(": ")
    name = "the container" if container.name == BENCHMARK else f"the container {container.name}"
    return _Step(
        why=Wait.CREATION,
        since=since,
        what=f"{node_of(pod)} cannot make {name}",
        detail=words,
        limit=timedelta() if ended else min(PATIENCE, limits.starting),
        cause=EndCause.NOT_STARTED,
        verdict=f"{node_of(pod)} cannot make {name}: {words}",
    )


def _working(container: ContainerView, since: datetime, limits: Limits) -> _Step:
    """A container before ours that runs, and has not done its part."""
    since = container.started_at or since
    if container.name == FETCH:
        limit = phrasing.spoken(limits.fetching)
        return _Step(
            why=Wait.DATA,
            since=since,
            what="fetching its data, code and files",
            limit=limits.fetching,
            cause=EndCause.NOT_BROUGHT,
            verdict=f"fetching took longer than limits.fetching = {limit}",
        )
    limit = phrasing.spoken(limits.starting)
    what = f"waiting for the container {container.name}, which runs before it"
    return _Step(
        why=Wait.RECORDER,
        since=since,
        what=what,
        limit=limits.starting,
        cause=EndCause.NOT_BROUGHT,
        verdict=f"{what}; not done within limits.starting = {limit}",
    )


def _crashing(container: ContainerView, since: datetime, limits: Limits) -> _Step:
    ended = _last_end(container)
    assert ended is not None
    words = f"{ended.reason or 'it'} (exit code {ended.exit_code}) {phrasing.plain(ended.message)}"
    verdict = f"the recorder does not stay alive: {words.strip()}"
    return _Step(
        why=Wait.RECORDER,
        since=since,
        what="waiting for the recorder",
        detail=verdict,
        limit=timedelta() if container.restarts >= CRASHES else limits.starting,
        cause=EndCause.NOT_BROUGHT,
        verdict=verdict,
    )


def _last_end(container: ContainerView) -> Termination | None:
    if container.phase is Phase.RUNNING:
        return None
    return container.ended or container.ended_before


def _image(container: ContainerView) -> str:
    if container.name in (FETCH, RECORDER):
        return f"our own image {container.image} (ANUBIS_KUBERNETES_IMAGE names it)"
    other = "" if container.name == BENCHMARK else f" (of the container {container.name})"
    return f"the image {container.image}{other}".rstrip()
