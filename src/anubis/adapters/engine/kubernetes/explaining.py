"""What the events of a pod or of a Job add to where a unit stands.

Objects say what is; some reasons are only told in events: a quota that forbids the pod, an
autoscaler at work, a Secret that is missing. Events are forgotten by the cluster after an hour and
come with delay, so little is decided by them: they give words, and the cause that fits the words;
and what a cluster forbids is not waited for as long as what it has no room for.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from anubis.adapters.engine.kubernetes import phrasing, viewing
from anubis.adapters.engine.kubernetes.stances import Failed, Standing, Wait, Waiting
from anubis.adapters.engine.kubernetes.waiting import PATIENCE
from anubis.domain.observation import EndCause

ASK_AFTER: Final = timedelta(seconds=5)
"""What is done sooner needs no explanation."""

_COUNT: Final = re.compile(r"^\d{1,9} ")
_USED: Final = re.compile(r", used: .{1,500}?(?=, limited: )")  # changes with every other pod

_FORBIDDEN: Final = re.compile(
    r"is forbidden: (?!exceeded quota|status unknown for quota)|denied the request"
)
"""What the cluster says of pods that it will not have until somebody changes something: a standard
of pod security, an admission webhook, an account that is not there. A quota may have room soon."""

_EMPTY_WORDS: Final = ("Unable to attach or mount", "Error: ")
"""How events begin that come beside one that says more."""

_ANSWERS: Final[Mapping[Wait, tuple[str, ...]]] = {
    Wait.QUEUE: ("Pending",),  # of Kueue
    Wait.POD: ("FailedCreate",),
    Wait.NODE: ("TriggeredScaleUp", "NotTriggerScaleUp", "Nominated", "FailedScheduling"),
    Wait.ADMISSION: ("NodeNotReady", "FailedMount", "FailedAttachVolume"),
    Wait.PREPARATION: (
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
        "NodeNotReady",
    ),
    Wait.IMAGE: ("Failed", "NodeNotReady"),
    Wait.RECORDER: ("Unhealthy", "NodeNotReady"),
    Wait.CREATION: (),
    Wait.DATA: (),
}
"""Which events explain which wait."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Happening:
    """One event, as far as it explains something."""

    reason: str
    message: str = ""
    count: int = 1
    last_at: datetime | None = None
    source: str = ""  #: who says it: ``karpenter``


def happening(obj: Mapping[str, Any]) -> Happening:
    """What we read of an event, of the old API or the new."""
    series = obj.get("series") if isinstance(obj.get("series"), Mapping) else {}
    source = obj.get("source") if isinstance(obj.get("source"), Mapping) else {}
    assert isinstance(series, Mapping)
    assert isinstance(source, Mapping)
    times = (
        series.get("lastObservedTime"),
        obj.get("lastTimestamp"),
        obj.get("eventTime"),
        obj.get("firstTimestamp"),
    )
    return Happening(
        reason=viewing.text(obj.get("reason")),
        message=viewing.text(obj.get("message")) or viewing.text(obj.get("note")),
        count=viewing.number(series.get("count")) or viewing.number(obj.get("count")) or 1,
        last_at=next((at for each in times if (at := viewing.moment(each))), None),
        source=viewing.text(source.get("component")) or viewing.text(obj.get("reportingComponent")),
    )


def events_wanted(standing: Standing, now: datetime) -> bool:
    """Whether events may say more. They are those of the pod, or of the workload while it has none
    (``Wait.POD``, ``Wait.QUEUE``).
    """
    if isinstance(standing, Waiting):
        return bool(_ANSWERS[standing.why]) and now - standing.since >= ASK_AFTER
    return isinstance(standing, Failed) and bool(standing.why and _ANSWERS[standing.why])


def explained(standing: Standing, events: Sequence[Happening], now: datetime) -> Standing:
    """The same standing, with what the events say about it; or that it waits in vain."""
    if not isinstance(standing, Waiting | Failed) or standing.why is None:
        return standing
    wanted = _ANSWERS[standing.why]
    telling = sorted((one for one in events if one.reason in wanted), key=_age)
    if not telling:
        return standing
    if not isinstance(standing, Waiting):
        return _at_the_end(standing, telling)
    is_forbidden = standing.why is Wait.POD and _FORBIDDEN.search(telling[-1].message)
    if is_forbidden and now - standing.since >= PATIENCE:
        return _forbidden(standing, telling)
    return _while_waiting(standing, telling)


def _age(event: Happening) -> tuple[datetime, str]:
    return event.last_at or datetime.min.replace(tzinfo=UTC), event.message


def _forbidden(standing: Waiting, events: Sequence[Happening]) -> Failed:
    words = f"the cluster makes no pod of it: {_words(standing.why, events)}"
    at = standing.since + PATIENCE
    return Failed(cause=EndCause.NOT_STARTED, message=words, at=at, why=standing.why)


def _while_waiting(standing: Waiting, events: Sequence[Happening]) -> Waiting:
    if standing.why is Wait.NODE:
        return _for_a_node(standing, events)
    if standing.why in (Wait.IMAGE, Wait.RECORDER) and standing.detail:
        return standing  # the node itself tells what the registry said, or the container
    return dataclasses.replace(standing, detail=_words(standing.why, events))


def _for_a_node(standing: Waiting, events: Sequence[Happening]) -> Waiting:
    """With an autoscaler at work, waiting is not for a node that is there."""
    scaling = [one for one in events if _is_scaler(one)]
    if not scaling:
        if standing.detail or not events:
            return standing
        return dataclasses.replace(standing, detail=phrasing.plain(events[-1].message))
    last, why = scaling[-1], f"; {standing.detail}" if standing.detail else ""
    if last.reason in ("TriggeredScaleUp", "Nominated"):
        detail = f"{phrasing.plain(last.message)}{why}"
        return dataclasses.replace(standing, what="waiting for the autoscaler", detail=detail)
    refusal = f"the autoscaler adds no node: {_sorted(last.message)}"
    return dataclasses.replace(standing, detail=f"{refusal}{why}")


def _is_scaler(event: Happening) -> bool:
    return event.reason != "FailedScheduling" or event.source == "karpenter"


def _sorted(message: str) -> str:
    """The autoscaler gives its reasons in any order, with the number of groups that have them."""
    head, mark, reasons = phrasing.plain(message).partition(": ")
    if not mark or "scale-up" not in head:
        return phrasing.plain(message)
    return ", ".join(sorted({_COUNT.sub("", one) for one in reasons.split(", ")}))


def _at_the_end(standing: Failed, events: Sequence[Happening]) -> Failed:
    if standing.why in (Wait.IMAGE, Wait.RECORDER) and ": " in standing.message:
        return standing
    scaling = [one for one in events if standing.why is Wait.NODE and _is_scaler(one)]
    if standing.why is Wait.NODE and not scaling:
        return standing
    words = _words(standing.why, scaling or events)
    if scaling:
        words = f"the autoscaler: {words}"
    cause = standing.cause
    if standing.why is Wait.POD and "exceeded quota" not in words:
        cause = EndCause.NOT_STARTED  # the cluster would not have it, however much room there is
    message = f"{standing.message}{': ' if standing.why is Wait.IMAGE else '; '}{words}"
    return dataclasses.replace(standing, cause=cause, message=message)


def _words(why: Wait | None, events: Sequence[Happening]) -> str:
    """What the newest event says that names what is missing."""
    telling = [one for one in events if not one.message.startswith(_EMPTY_WORDS)]
    said = phrasing.plain((telling or events)[-1].message)
    if why is Wait.IMAGE:
        return phrasing.registry(said)
    if why is Wait.POD:
        return phrasing.advised(_USED.sub("", said.removeprefix("Error creating: ")))
    return said
