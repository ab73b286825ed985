"""A transfer is told often enough to be watched, and seldom enough to be kept."""

from __future__ import annotations

from datetime import timedelta

from anubis.domain.dataset import Progress
from anubis.runtime.reporting import Reporter
from anubis.testing.clock import ManualClock

URI = "s3://bucket/data.tar"


def test_a_transfer_of_known_size_is_told_at_every_tenth() -> None:
    reporter, told = Reporter(ManualClock(), "fetch"), []
    for done in range(1001):
        reporter(Progress(uri=URI, done_bytes=done * 2**20, total_bytes=1000 * 2**20))
        told += reporter.news()
    assert len(told) == 10
    assert told[4].message == "s3://bucket/data.tar: 500 MiB of 1000 MiB"
    assert told[4].data == {
        "fetch": URI,
        "phase": "progress",
        "done_bytes": 500 * 2**20,
        "total_bytes": 1000 * 2**20,
    }


def test_one_of_unknown_size_is_told_once_a_minute() -> None:
    clock = ManualClock()
    reporter, told = Reporter(clock, "fetch"), []
    for second in range(600):
        reporter(Progress(uri=URI, done_bytes=second, total_bytes=None))
        told += reporter.news()
        clock.advance(timedelta(seconds=1))
    assert len(told) == 9


def test_an_error_names_the_guilty_and_no_secret_is_told() -> None:
    reporter = Reporter(ManualClock(), "fetch")
    uris = ["https://host/a?signature=secret", "https://host/b"]
    [event] = reporter.failed(uris, "https://host/a?… was not found")
    assert event.data["fetch"] == "https://host/a?…"
    assert "secret" not in str(event)
    assert len(reporter.failed(uris, "the disk is full")) == 2
