"""What carries runs leaves when a part that it cannot do without dies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from anubis.bootstrap import carrying, embedded, stores
from anubis.settings.model import Settings


async def _carry_with_a_defect(settings: Settings) -> None:
    async def die() -> None:
        raise ZeroDivisionError("a defect of ours")

    async with stores.opened(settings) as kept, carrying.opened(settings, kept) as carried:
        carried.start(die, name="doomed")
        async with asyncio.timeout(30):
            await carried.stop.wait()


async def test_a_part_that_dies_ends_the_runtime_with_its_error(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    embedded.make_home(settings)
    with pytest.raises(ZeroDivisionError, match="a defect of ours"):
        await _carry_with_a_defect(settings)


async def test_leaving_is_no_error(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    embedded.make_home(settings)
    async with stores.opened(settings) as kept, carrying.opened(settings, kept) as carried:
        carried.leave()
        assert carried.stop.is_set()
