"""What is kept of a unit is found again as it was, by whoever comes after a crash."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.places import Chapter, Named, Place, Spec, StopRequest
from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import Limits

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
JOB = Named(kind=kinds.JOB, name="anubis-1-benchmark")
SECRET = Named(kind=kinds.SECRET, name="anubis-1")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "run")
    found.directory.mkdir()
    return found


def a_spec() -> Spec:
    limits = Limits(capacity=timedelta(seconds=90), output_bytes=17, concurrency=None)
    return Spec(unit="benchmark", workload=JOB, objects=(SECRET, JOB), limits=limits, asked_at=NOON)


def test_what_was_asked_for_is_found_again(place: Place) -> None:
    assert place.spec() is None
    assert not place.is_used
    place.write_spec(a_spec())
    assert place.is_used
    assert place.spec() == a_spec()


def test_only_what_the_cluster_took_counts_as_created(place: Place) -> None:
    place.write_spec(a_spec())
    assert place.created_at is None
    place.mark_created()
    assert place.created_at is not None


def test_the_story_survives_half_a_line_of_who_was_killed_in_it(place: Place) -> None:
    place.tell(Chapter(at=NOON, waiting="no node has room"))
    place.tell(Chapter(at=NOON, where="node1"))
    with (place.directory / "story").open("a") as file:
        file.write('{"at": "2026-')
    assert place.story() == (
        Chapter(at=NOON, waiting="no node has room"),
        Chapter(at=NOON, where="node1"),
    )


def test_the_first_request_to_stop_decides_the_cause_and_the_shortest_the_patience(
    place: Place,
) -> None:
    minute, second = timedelta(minutes=1), timedelta(seconds=1)
    first = StopRequest(cause=EndCause.TIMED_OUT, grace=minute, asked_at=NOON)
    place.request_stop(first)
    later = StopRequest(cause=EndCause.CANCELED, grace=second, asked_at=NOON + 10 * second)
    place.request_stop(later)
    found = place.stop_request()
    assert found == StopRequest(cause=EndCause.TIMED_OUT, grace=11 * second, asked_at=NOON)
    place.request_stop(StopRequest(cause=EndCause.CANCELED, grace=minute, asked_at=NOON))
    assert place.stop_request() == found


def test_the_first_end_that_is_written_stays(place: Place) -> None:
    ended = UnitEnded(
        unit="benchmark",
        at=NOON,
        cause=EndCause.OUT_OF_MEMORY,
        exit_code=137,
        message="too much",
        cpu_seconds=1.5,
        peak_memory_bytes=10,
    )
    place.write_ended(ended)
    place.write_ended(UnitEnded(unit="benchmark", at=NOON, cause=EndCause.LOST))
    assert place.ended() == ended
