"""A run that was removed is gone from its node too, and not only from the API."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests import kubernetes_engines
from tests.cluster_faults.given import STUBBORN, begun, shell

from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import until_it_speaks

pytestmark = pytest.mark.cluster

PATIENT = dataclasses.replace(kubernetes_engines.TERMS, drain=timedelta(days=1))
"""As people have it: recorders wait a day for whoever reads their journals."""


@pytest.fixture
async def patient(tmp_path: Path, namespace: str) -> AsyncIterator[Engine]:
    async with kubernetes_engines.opened(tmp_path, namespace, PATIENT) as found:
        yield found


def _on_this_machine(pod: str) -> list[str]:
    """The processes of a pod that tell its name, on a node that is this machine."""
    word = f"POD_NAME={pod}\0".encode()
    return [one.parent.name for one in Path("/proc").glob("[0-9]*/environ") if word in _read(one)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it is gone, or not ours
        return b""


async def _gone(pod: str) -> list[str]:
    """What is left after a while; a container that was killed takes a moment."""
    for _ in range(50):
        if not (left := await asyncio.to_thread(_on_this_machine, pod)):
            return []
        await asyncio.sleep(0.1)
    return left


async def test_of_a_run_that_was_removed_its_node_keeps_no_recorder(
    patient: Engine, namespace: str
) -> None:
    """It would wait there for a day, for somebody to read what was read."""
    case = await begun(patient, namespace, shell("echo here; sleep 1"))
    await until_it_speaks(patient, case.run_id)
    pod = await case.pod()
    if not await asyncio.to_thread(_on_this_machine, pod):
        pytest.skip("the node is another machine than this")
    assert (await case.ended()).cause is EndCause.EXITED
    await patient.remove(case.run_id)
    assert await _gone(pod) == []


async def test_of_a_run_that_is_removed_while_it_runs_its_node_keeps_nothing(
    patient: Engine, namespace: str
) -> None:
    case = await begun(patient, namespace, shell(STUBBORN, Limits(grace=timedelta(seconds=1))))
    await until_it_speaks(patient, case.run_id)
    pod = await case.pod()
    if not await asyncio.to_thread(_on_this_machine, pod):
        pytest.skip("the node is another machine than this")
    await patient.wipe(case.run_id)  # type: ignore[attr-defined] # of this engine
    assert await _gone(pod) == []
