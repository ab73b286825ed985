"""Look after one unit at the cluster until it has ended, and keep what is seen of it.

Each unit under way has one attendant. It is woken by the shared watch, copies the recorder's
journal, passes requests to stop on, and writes down how the unit ended. What it knows is all on the
disk or at the cluster: another one, after a restart, comes to the same end.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from anubis.adapters.engine.kubernetes import explaining, kinds, mirroring, naming, standing
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.exact_times import BEGIN_SECONDS, exact
from anubis.adapters.engine.kubernetes.explaining import Happening
from anubis.adapters.engine.kubernetes.following import Watch
from anubis.adapters.engine.kubernetes.mirroring import Mirror
from anubis.adapters.engine.kubernetes.pacing import Pace
from anubis.adapters.engine.kubernetes.places import Chapter, Place, Spec, StopRequest, now
from anubis.adapters.engine.kubernetes.refusals import NotPermitted
from anubis.adapters.engine.kubernetes.stances import (
    Exited,
    Failed,
    Gone,
    Running,
    Seen,
    Standing,
    Waiting,
)
from anubis.adapters.engine.kubernetes.viewing import (
    JobView,
    PodView,
    job_view,
    mpi_job_view,
    pod_view,
)
from anubis.domain.errors import EngineUnavailable
from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.run import RunId

LOOK_SECONDS: Final = (5.0, 30.0)
"""How often deadlines are looked at while nothing changes, at first and after minutes: hundreds of
units that wait would keep a core busy with looking.
"""

LOOK_SHARE: Final = 0.2
"""Of the time that a unit has been attended: the pause until the next look."""

WORTH_TELLING_SECONDS: Final = 2.0
"""What a unit waits for is told if it lasts so long."""

EVENTS_SECONDS: Final = 15.0
"""How often the cluster is asked at most what it said about a unit that waits."""

EVENTS_PACE_SECONDS: Final = 0.5
"""And how often at most for all units that wait. One that fails is not held up by that."""

AGAIN_SECONDS: Final = (0.2, 5.0)
"""Between tries to reach a recorder, the first and the longest."""

FORBIDDEN_PATIENCE_SECONDS: Final = 120.0
"""How long the journal of an ended program is asked for by whoever may not have it."""

STOP_AGAIN: Final = timedelta(seconds=5)
"""After which a recorder that was asked to stop its program is asked again."""

PASS_ON_SECONDS: Final = 20.0
"""For a recorder to take a request to stop. One that hangs must not keep its pod alive."""

STOP_PATIENCE: Final = timedelta(seconds=30)
"""How long after its grace a program may still run until its pod is deleted."""

TAKEN: Final = frozenset({EndCause.LOST, EndCause.EVICTED, EndCause.DISMISSED})
"""How those end whose pods were deleted, by whomever."""

RECORDER: Final = ("python3", "-m", "anubis.adapters.engine.kubernetes.recorder")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What all attendants share."""

    cluster: Cluster
    pods: Watch
    jobs: Watch
    mpi_jobs: Watch
    events: Pace = dataclasses.field(default_factory=lambda: Pace(EVENTS_PACE_SECONDS))


class Bell:
    """Wakes everybody who waits, each time it rings."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake who waits now."""
        self._event.set()
        self._event = asyncio.Event()

    def next(self) -> asyncio.Event:
        """Set when it rings for the next time. Take it before you look."""
        return self._event


class Attendant:
    """``attend`` does it all; ``bell`` rings when there is something new to tell."""

    def __init__(self, surroundings: Surroundings, place: Place, run_id: RunId, spec: Spec) -> None:
        self._around = surroundings
        self._place = place
        self._run_id = run_id
        self._spec = spec
        self._followed = place.followed()
        made, pod = spec.workload.name, self._followed.name
        self._seen = Seen(created_at=spec.asked_at, workload=made, pod=pod)
        self._began = time.monotonic()
        self._copying: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  #: from the copy of the journal, or somebody who wants a stop
        self._asked_events_at = float("-inf")
        self._events: Sequence[Happening] = ()
        self._stop_passed: tuple[datetime, StopRequest] | None = None
        self._last_pod: PodView | None = None
        self._unreachable = ""  #: why the journal cannot be fetched, while that is so
        self._is_forbidden = False  #: whether that is for want of a right
        self._waits_for_journal_since: float | None = None  #: of an ended program, in vain
        self._told_last: str | None = None  #: of the story; empty: that it began
        self._began_at: datetime | None = None  #: as the cluster says, if it says so
        self._seen_to_run_at = float("inf")
        self._waits: tuple[str, float] | None = None  #: for what, and since when as we saw it
        self.mirror = Mirror(place.journal)
        self.bell = Bell()
        self.trouble = ""  #: what keeps us from looking after it at the moment
        self._log = structlog.get_logger("anubis.kubernetes")

    @property
    def unit(self) -> str:
        """Whom it looks after."""
        return self._spec.unit

    def wake(self) -> None:
        """Have it look at once: there is a request to stop."""
        self._news.set()

    async def attend(self) -> None:
        """Until the end. Trouble with the cluster or the disk is waited out."""
        watches = [self._around.pods, self._workloads]
        with contextlib.ExitStack() as stack:
            for watch in watches:
                stack.enter_context(watch.subscribe(self._run_id, self._news))
            try:
                while self._place.ended() is None:
                    await self._turn_safely()
                    await self._pause()
            finally:
                await self._end_copying()
                self.mirror.close()
                self.bell.ring()

    async def _end_copying(self) -> None:
        if self._copying is not None:
            self._copying.cancel()
            await asyncio.wait([self._copying])

    async def _turn_safely(self) -> None:
        self._news.clear()
        try:
            await self.mirror.open()
            await self._turn()
            self.trouble = ""
        except (EngineUnavailable, OSError) as error:
            if self.trouble != str(error):
                self._log.warning("unit_not_attended", run=self._run_id, why=str(error))
            self.trouble = str(error)
            self._waits_for(f"the cluster cannot be asked: {error}")

    async def _pause(self) -> None:
        if self._place.ended() is not None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._look_again()):
                await self._news.wait()

    def _look_again(self) -> float:
        """Seconds until the next look, if nothing happens."""
        is_news = self._waits is not None and self._waits[0] != self._told_last
        has_begun = self._began_at is not None and self._told_last != ""
        if self.trouble or is_news or has_begun:
            return WORTH_TELLING_SECONDS
        is_ending = self._stop_passed is not None or self._waits_for_journal_since is not None
        age = 0.0 if is_ending else time.monotonic() - self._began
        return min(max(LOOK_SECONDS[0], age * LOOK_SHARE), LOOK_SECONDS[1])

    async def _turn(self) -> None:
        found = await self._stand()
        if found is None:  # the watch does not know yet: nothing is concluded from that
            return
        match found:
            case Waiting():
                await self._wait(found)
            case Running():
                await self._run(found)
            case Exited():
                await self._exit(found)
            case Failed():
                # First the reason: others of the same workload must not be told another one.
                self._end_taken(found.cause, found.message, at=found.at)
                await self._withdraw()
            case Gone():
                self._vanish(found)

    @property
    def _workloads(self) -> Watch:
        is_job = self._spec.workload.kind.kind == kinds.JOB.kind
        return self._around.jobs if is_job else self._around.mpi_jobs

    async def _stand(self) -> Standing | None:
        if trouble := self._around.pods.trouble or self._workloads.trouble:
            raise EngineUnavailable(trouble)
        if not (self._around.pods.is_fresh and self._workloads.is_fresh):
            return None
        pods, workload = self._pods(), self._workload()
        self._seen = standing.remembered(self._seen, pods, workload)
        self._last_pod = pods[-1] if pods else self._last_pod
        if not pods and workload is None and not self._was_listed_since_creation():
            return None
        found = standing.stand(pods, workload, self._seen, now(), self._spec.limits)
        if explaining.events_wanted(found, now()):
            uid = pods[-1].uid if pods else workload.uid if workload else ""
            told = await self._told(uid, is_last=isinstance(found, Failed))
            found = explaining.explained(found, told, now())
        return found

    def _was_listed_since_creation(self) -> bool:
        """Whether what is not there was not there at a moment after it had been made."""
        gone = self._workloads.state(self._run_id).gone
        if any(one.get("metadata", {}).get("name") == self._spec.workload.name for one in gone):
            return True
        listed, created = self._workloads.listed_at, self._place.created_at
        if listed is None or created is None:
            return False
        return now() - timedelta(seconds=time.monotonic() - listed) > created

    def _pods(self) -> list[PodView]:
        """Its own. Once a program ran, one that an operator makes in its place is another."""
        mine, own = (self._run_id, self.unit), self._followed.uid
        found = [
            pod_view(one)
            for one in self._around.pods.state(self._run_id).objects
            if naming.unit_of(one.get("metadata", {}).get("labels") or {}) == mine
        ]
        kept = [pod for pod in found if own in ("", pod.uid)]
        return sorted(kept, key=lambda pod: str(pod.created_at))

    def _workload(self) -> JobView | None:
        for one in self._workloads.state(self._run_id).objects:
            if one.get("metadata", {}).get("name") == self._spec.workload.name:
                is_job = self._spec.workload.kind.kind == kinds.JOB.kind
                return job_view(one) if is_job else mpi_job_view(one)
        return None

    async def _told(self, uid: str, *, is_last: bool) -> Sequence[Happening]:
        """What the cluster said about the pod, or its workload while there is none; not asked
        too often.
        """
        passed = asyncio.get_running_loop().time() - self._asked_events_at
        if uid and passed >= EVENTS_SECONDS and (is_last or self._around.events.may()):
            self._asked_events_at = asyncio.get_running_loop().time()
            listing = await self._around.cluster.list(
                kinds.EVENT, fields=f"involvedObject.uid={uid}"
            )
            self._events = [explaining.happening(one) for one in listing.items]
        return self._events

    async def _wait(self, found: Waiting) -> None:
        request = self._place.stop_request()
        if request is not None:
            await self._withdraw()
            self._end(request.cause, "")
            return
        self._waits_for(found.message)

    def _waits_for(self, message: str) -> None:
        """Tell what lasts: on the way to its start, a unit waits for six things or more."""
        moment = time.monotonic()
        if self._waits is None or self._waits[0] != message:
            self._waits = (message, moment)
        if moment - self._waits[1] >= WORTH_TELLING_SECONDS:
            self._tell(Chapter(at=now(), waiting=message))

    async def _run(self, found: Running) -> None:
        self._begin(found.since)
        self._copy()
        request = self._place.stop_request()
        if found.leaving is not None and self.mirror.sealed is not None:
            # A node tells nothing of a pod that is being deleted until its recorder is gone too,
            # which waits for us. That the journal is sealed says that the program is over.
            await self._withdraw()
            self._end_taken(found.leaving.cause, found.leaving.message)
            return
        if request is None and found.leaving is not None:
            # Its node has sent it SIGTERM, and would wait as long as the recorder may.
            request = StopRequest(
                cause=EndCause.CANCELED,
                grace=self._spec.limits.grace,
                asked_at=found.leaving.at or now(),
            )
        if request is not None:
            await self._pass_on(request)

    def _begin(self, told: datetime) -> None:
        """It began, as the cluster tells; wait a little for its recorder to say when exactly."""
        self._began_at = told
        self._seen_to_run_at = min(self._seen_to_run_at, time.monotonic())
        is_late = time.monotonic() - self._seen_to_run_at >= BEGIN_SECONDS
        if self.mirror.began is not None or is_late:
            self._tell_begin()

    def _tell_begin(self) -> None:
        if self._began_at is not None:
            at = exact(self._began_at, self.mirror.began)
            self._tell(Chapter(at=at, where=self._seen.node))

    async def _pass_on(self, request: StopRequest) -> None:
        """Have the recorder stop the program; if that does not help, delete its pod."""
        moment = now()
        if moment > request.asked_at + request.grace + STOP_PATIENCE:
            await self._withdraw()
            return
        if self._stop_passed is not None:
            passed_at, passed = self._stop_passed
            if passed == request and moment < passed_at + STOP_AGAIN:
                return
        left = max(timedelta(), request.asked_at + request.grace - moment)
        assert self._last_pod is not None, "it runs"
        command = (*RECORDER, "stop", f"{left.total_seconds():.3f}", request.cause.value)
        output = self._around.cluster.exec(self._last_pod.name, mirroring.RECORDER, command)
        try:
            async with asyncio.timeout(PASS_ON_SECONDS), output as said:
                async for _ in said:
                    pass
        except TimeoutError:
            text = f"the recorder does not answer within {PASS_ON_SECONDS:g} s"
            raise EngineUnavailable(text) from None
        if said.exit_code:
            raise EngineUnavailable(f"the recorder does not stop its program: {said.complaint}")
        self._stop_passed = (moment, request)

    async def _exit(self, found: Exited) -> None:
        if found.started_at is not None:
            self._begin(found.started_at)
        if self.mirror.sealed is None and found.has_recorder and not self._is_hopeless():
            self._copy()
            return
        await self.mirror.sync()
        self._end_exited(found)

    def _is_hopeless(self) -> bool:
        """Whether the journal of an ended program was out of reach for so long that it stays so."""
        moment = time.monotonic()
        if not self._unreachable or self._waits_for_journal_since is None:
            self._waits_for_journal_since = moment
        patience = self._spec.limits.finishing.total_seconds()
        if self._is_forbidden:  # rights do not come by themselves
            patience = min(patience, FORBIDDEN_PATIENCE_SECONDS)
        return moment - self._waits_for_journal_since > patience

    def _end_exited(self, found: Exited) -> None:
        how = f"signal {found.signal}" if found.signal else f"code {found.exit_code}"
        if self.mirror.sealed is None:
            why = self._unreachable if found.has_recorder else "its pod has no recorder any more"
            text = f"it ended with {how}, but what it wrote could not be fetched: {why}"
            cause = self.mirror.stopped or EndCause.LOST
            if found.message and self._place.stop_request() is None:  # somebody took its pod away
                cause, text = found.cause, f"{found.message}; {text}"
            self._end(cause, text, at=found.at, exited=found)
            return
        if not self.mirror.sealed.get("is_whole", True) and found.cause is EndCause.EXITED:
            text = f"it ended with {how}, but its node has not kept all that it wrote"
            self._end(EndCause.LOST, text, at=found.at, exited=found)
            return
        cause = found.cause
        message, request = found.message, self._place.stop_request()
        if cause is EndCause.EXITED and self.mirror.stopped is not None:
            cause = self.mirror.stopped
            if request is None and self._seen.parting is not None and cause is EndCause.CANCELED:
                # We had it stopped because its pod was being deleted, and the clock of its node is
                # behind that of the cluster: it seems to have ended before.
                cause, message = self._seen.parting.cause, self._seen.parting.message
        elif cause is EndCause.EXITED and found.out_of_memory:
            cause = EndCause.OUT_OF_MEMORY
        if request is not None and cause in TAKEN:
            cause, message = request.cause, ""
        self._end(cause, message, at=found.at, exited=found)

    def _vanish(self, found: Gone) -> None:
        self._end_taken(found.cause, found.message)

    def _end_taken(self, cause: EndCause, message: str, *, at: datetime | None = None) -> None:
        """End one whose pod was taken away; by us, if somebody had wanted it to stop."""
        request = self._place.stop_request()
        if request is not None and cause in TAKEN:
            cause, message = request.cause, ""
        self._end(cause, message, at=at)

    def _end(
        self,
        cause: EndCause,
        message: str,
        *,
        at: datetime | None = None,
        exited: Exited | None = None,
    ) -> None:
        self._tell_begin()
        totals = self.mirror.sealed or {}
        cpu, peak = totals.get("cpu_seconds"), totals.get("peak_memory_bytes")
        self._place.write_ended(
            UnitEnded(
                unit=self.unit,
                at=exact(at or now(), self.mirror.ended),
                cause=cause,
                exit_code=exited.exit_code if exited else None,
                signal=exited.signal if exited else None,
                message=message,
                cpu_seconds=float(cpu) if isinstance(cpu, int | float) else 0.0,
                peak_memory_bytes=int(peak) if isinstance(peak, int | float) else 0,
            )
        )
        self.bell.ring()

    def _tell(self, chapter: Chapter) -> None:
        """Add to the story what is new in it; once it has begun, it does not wait any more."""
        if self._told_last is None and (story := self._place.story()):
            self._told_last = story[-1].waiting
        if self._told_last in ("", chapter.waiting):
            return
        self._place.tell(chapter)
        self._told_last = chapter.waiting
        self.bell.ring()

    async def _withdraw(self) -> None:
        """Delete what makes the unit, and its pod with little patience: nobody needs its journal,
        or nobody reaches its recorder.
        """
        workload, cluster = self._spec.workload, self._around.cluster
        # Its pod first: deleted with its workload, it has all the patience of its recorder, and
        # nodes do not let themselves be hurried later.
        for pod in self._pods():
            await cluster.delete(kinds.POD, pod.name, grace=1)
        await cluster.delete(workload.kind, workload.name)

    def _copy(self) -> None:
        """See that the journal is being copied."""
        if self._copying is not None and self._copying.done():
            self._copying.result()  # a defect of ours ends the attendance, and is told
        if self.mirror.sealed is None and (self._copying is None or self._copying.done()):
            assert self._last_pod is not None, "it runs"
            if not self._followed.uid:
                self._followed = self._place.follow(self._last_pod.name, self._last_pod.uid)
            self._copying = asyncio.create_task(
                self._keep_copying(self._followed.name), name=f"journal of {self._run_id}"
            )

    def _heard(self) -> None:
        """More of the journal is here."""
        self._unreachable = ""
        self.bell.ring()
        if self.mirror.began is not None and self._told_last != "":
            self._news.set()

    async def _keep_copying(self, pod: str) -> None:
        pause, longest = AGAIN_SECONDS
        try:
            while self.mirror.sealed is None:
                size = self.mirror.size
                try:
                    await mirroring.follow(self._around.cluster, pod, self.mirror, self._heard)
                    self._unreachable = ""
                except (EngineUnavailable, OSError, ValueError) as error:
                    self._is_forbidden = isinstance(error, NotPermitted)
                    self._unreachable = str(error)
                pause = AGAIN_SECONDS[0] if self.mirror.size > size else min(2 * pause, longest)
                if self.mirror.sealed is None:
                    await asyncio.sleep(pause)
        finally:
            self._news.set()
            self.bell.ring()
