"""A short load campaign over a real service; ``python -m bench.load`` wages the long one."""

from __future__ import annotations

import signal

import pytest

from bench import load

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
async def test_every_acknowledged_submission_ends_once_and_truthfully(ending: int) -> None:
    """Twenty clients, random cancels, and the service restarted in the middle."""
    report = await load.campaign(runs=200, clients=20, ending=ending, seed=7)

    assert report.faults == []
    assert sum(report.states.values()) == 200
    assert report.events > 0
