"""A real process engine in a directory of its own, and a look for processes left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.engine.process.guardian import recovery
from anubis.domain.run import RunId

SurvivorsOf = Callable[[RunId], list[int]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
async def engine(directory: Path) -> AsyncIterator[ProcessEngine]:
    """An engine whose runs must all be over, without a process left, when the test ends."""
    async with ProcessEngine(directory, revive=None) as engine:
        yield engine
        for run_id in await engine.leftovers():
            for unit in await engine.started(run_id):
                async with asyncio.timeout(30):
                    async for _ in engine.observe(run_id, unit):
                        pass
            assert list(recovery.marked(run_id, None)) == []
            await engine.remove(run_id)


@pytest.fixture
def survivors_of() -> SurvivorsOf:
    return lambda run_id: list(recovery.marked(run_id, None))
