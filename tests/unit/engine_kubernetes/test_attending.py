"""What an attendant concludes from what it sees, at moments that a real cluster seldom has."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from anubis.adapters.engine.kubernetes import (
    attending,
    kinds,
    mirroring,
    naming,
    recording,
    standing,
)
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.attending import Attendant, Surroundings
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.following import Watch
from anubis.adapters.engine.kubernetes.mirroring import Mirror
from anubis.adapters.engine.kubernetes.parting import Parting
from anubis.adapters.engine.kubernetes.places import Named, Place, Spec, StopRequest
from anubis.adapters.engine.kubernetes.recording import Kind
from anubis.adapters.engine.kubernetes.stances import Exited, Gone, Running
from anubis.adapters.engine.kubernetes.viewing import PodView
from anubis.domain.errors import EngineUnavailable
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits
from anubis.domain.run import RunId
from anubis.testing.clock import NOON

HOUR = timedelta(hours=1)
DONE = Exited(exit_code=0, signal=None, out_of_memory=False, at=NOON)
SEALED = recording.packed_json(Kind.SEALED, {"is_whole": True})


BEGAN_AT, ENDED_AT = NOON + timedelta(milliseconds=250), NOON + timedelta(milliseconds=750)
NOON_NS = round(NOON.timestamp()) * 10**9
BEGAN = recording.packed_json(Kind.BEGAN, {}, NOON_NS + 250_000_000)
ENDED = recording.packed_json(Kind.ENDED, {"cpu_seconds": 0.5}, NOON_NS + 750_000_000)


class _Attended(Attendant):
    """One whose cluster is never asked."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        job = Named(kind=kinds.JOB, name="job")
        spec = Spec(unit="benchmark", workload=job, objects=(job,), limits=limits, asked_at=NOON)
        place = Place(folder / "unit")
        place.write_spec(spec)
        cluster = Cluster(Access(kubeconfig=str(folder / "none")))
        watches = [Watch(cluster, kind, "") for kind in (kinds.POD, kinds.JOB, kinds.MPI_JOB)]
        around = Surroundings(
            cluster=cluster, pods=watches[0], jobs=watches[1], mpi_jobs=watches[2]
        )
        super().__init__(around, place, RunId("r"), spec)
        self._last_pod = PodView(name="pod")

    def seen_to_leave(self) -> None:
        """Its pod is being deleted by somebody."""
        parting = Parting(cause=EndCause.LOST, message="somebody deleted it", at=NOON)
        self._seen = dataclasses.replace(self._seen, parting=parting)


async def test_a_stream_that_broke_once_costs_no_run_its_end_hours_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long a journal may be out of reach is counted from when it is."""
    attended = _Attended(tmp_path, Limits(finishing=HOUR))
    moment, calls, sealed = 1000.0, [0], asyncio.Event()
    monkeypatch.setattr(attending, "time", SimpleNamespace(monotonic=lambda: moment))

    async def follow(_: Cluster, __: str, mirror: Mirror, told: Callable[[], None]) -> None:
        calls[0] += 1
        if calls[0] == 1:
            raise EngineUnavailable("the API server is being restarted")
        await sealed.wait()
        await mirror.add(SEALED)
        told()

    monkeypatch.setattr(mirroring, "follow", follow)
    await attended.mirror.open()
    attended._copy()
    while calls[0] < 2:
        await asyncio.sleep(0.01)
    moment += 2 * 3600
    await attended._exit(DONE)
    assert attended._place.ended() is None
    sealed.set()
    assert attended._copying is not None
    await attended._copying
    await attended._exit(DONE)
    ended = attended._place.ended()
    assert ended is not None
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 0)
    attended.mirror.close()


async def test_a_journal_that_stays_out_of_reach_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attended = _Attended(tmp_path, Limits(finishing=HOUR))
    moment = 1000.0
    monkeypatch.setattr(attending, "time", SimpleNamespace(monotonic=lambda: moment))
    monkeypatch.setattr(attended, "_copy", lambda: None)
    await attended.mirror.open()
    attended._unreachable = "its node is away"
    await attended._exit(DONE)
    moment += 3599
    await attended._exit(DONE)
    assert attended._place.ended() is None
    moment += 2
    await attended._exit(DONE)
    ended = attended._place.ended()
    assert ended is not None
    assert ended.cause is EndCause.LOST
    attended.mirror.close()


@pytest.mark.parametrize("is_asked", [False, True])
async def test_a_pod_that_somebody_deleted_is_not_canceled_for_the_clock_of_its_node(
    tmp_path: Path, *, is_asked: bool
) -> None:
    attended = _Attended(tmp_path, Limits())
    await attended.mirror.open()
    await attended.mirror.add(recording.packed_json(Kind.STOPPED, {"cause": "canceled"}) + SEALED)
    attended.seen_to_leave()
    if is_asked:
        request = StopRequest(cause=EndCause.CANCELED, grace=HOUR, asked_at=NOON)
        attended._place.request_stop(request)
    await attended._exit(DONE)
    ended = attended._place.ended()
    assert ended is not None
    lost = (EndCause.LOST, "somebody deleted it")
    assert (ended.cause, ended.message) == ((EndCause.CANCELED, "") if is_asked else lost)
    attended.mirror.close()


async def test_begin_and_end_are_as_exact_as_the_recorder_saw_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attended = _Attended(tmp_path, Limits())
    monkeypatch.setattr(attended, "_copy", lambda: None)
    await attended.mirror.open()
    await attended._run(Running(since=NOON))
    assert not attended._place.story(), "its recorder may say it any moment"
    await attended.mirror.add(BEGAN)
    attended._heard()
    assert attended._news.is_set(), "it does not wait for the next look"
    await attended._run(Running(since=NOON))
    [chapter] = attended._place.story()
    assert (chapter.at, chapter.waiting) == (BEGAN_AT, "")
    await attended.mirror.add(ENDED + SEALED)
    await attended._exit(DONE)
    ended = attended._place.ended()
    assert ended is not None
    assert ended.at == ENDED_AT
    attended.mirror.close()


async def test_a_recorder_that_nobody_reaches_does_not_hide_that_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attended = _Attended(tmp_path, Limits())
    moment = 1000.0
    monkeypatch.setattr(attending, "time", SimpleNamespace(monotonic=lambda: moment))
    monkeypatch.setattr(attended, "_copy", lambda: None)
    await attended.mirror.open()
    await attended._run(Running(since=NOON))
    assert not attended._place.story()
    assert attended._look_again() <= 2
    moment += 2
    await attended._run(Running(since=NOON))
    assert [chapter.at for chapter in attended._place.story()] == [NOON]
    attended.mirror.close()


async def test_a_pod_that_vanished_before_its_recorder_was_heard_did_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attended = _Attended(tmp_path, Limits())
    monkeypatch.setattr(attended, "_copy", lambda: None)
    await attended.mirror.open()
    await attended._run(Running(since=NOON))
    attended._vanish(Gone(message="somebody deleted it"))
    assert [chapter.at for chapter in attended._place.story()] == [NOON]
    attended.mirror.close()


async def test_a_pod_that_an_operator_makes_in_the_place_of_one_that_ran_is_another(
    tmp_path: Path,
) -> None:
    """It has a journal of its own, also if its name is the same and nobody saw the first one go."""
    first = _Attended(tmp_path, Limits())
    first._place.follow("worker-0", "uid of the first")
    again = _Attended(tmp_path, Limits())
    labels = {naming.RUN: "r", naming.UNIT: "benchmark"}
    pods = [
        {"metadata": {"name": "worker-0", "uid": uid, "labels": labels, "resourceVersion": "1"}}
        for uid in ("uid of the first", "uid of the second")
    ]
    for attended in (first, again):
        attended._around.pods._changed(pods[1])
    assert [pod.uid for pod in first._pods()] == ["uid of the second"], "it followed none yet"
    assert again._pods() == []
    found = standing.stand([], None, again._seen, NOON, Limits())
    assert isinstance(found, Gone)
    assert found.cause is EndCause.LOST
    again._around.pods._changed(pods[0])
    assert [pod.uid for pod in again._pods()] == ["uid of the first"]
