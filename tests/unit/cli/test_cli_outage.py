"""A service that goes away while its output is followed is borne, for a while, and told once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from anubis.domain.errors import RunNotFound, ServiceUnavailable
from anubis.entrypoints.cli import following
from anubis.testing.clock import ManualClock


async def test_an_outage_is_told_once_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    outage = following.Outage(clock)
    async with outage.borne():
        pass
    for _ in range(3):
        async with outage.borne():
            raise ServiceUnavailable("it does not answer")
    gone = "the service went away; trying again, the run goes on\n"
    assert capsys.readouterr().err == gone
    for _ in range(2):
        async with outage.borne():
            pass
    assert capsys.readouterr().err == "the service answers again\n"
    clock.advance(timedelta(hours=1))
    async with outage.borne():
        raise ServiceUnavailable("again")
    assert capsys.readouterr().err == gone


async def test_an_outage_without_end_is_an_error() -> None:
    clock = ManualClock()
    outage = following.Outage(clock)
    async with outage.borne():
        pass
    async with outage.borne():
        raise ServiceUnavailable("gone")
    clock.advance(timedelta(seconds=following.LONGEST_OUTAGE + 1))
    with pytest.raises(ServiceUnavailable):
        async with outage.borne():
            raise ServiceUnavailable("gone")


async def test_a_service_that_never_answered_and_other_errors_are_not_borne() -> None:
    outage = following.Outage(ManualClock())
    with pytest.raises(ServiceUnavailable):
        async with outage.borne():
            raise ServiceUnavailable("nobody there")
    with pytest.raises(RunNotFound):
        async with outage.borne():
            raise RunNotFound("purged")
