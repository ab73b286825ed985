from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.event_bus.pipe import PipeReceiver, PipeSender


async def test_a_wake_up_before_the_wait_is_not_lost() -> None:
    bus = InProcessBus()
    bus.wake()
    assert await bus.wait(10)
    assert not await bus.wait(0.001)


async def test_a_wake_up_crosses_the_pipe(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        receiver = PipeReceiver.open(tmp_path / "wake", stack)
        assert PipeSender(tmp_path / "wake").wake()
        assert await receiver.wait(10)


async def test_a_sender_learns_that_nobody_listens(tmp_path: Path) -> None:
    sender = PipeSender(tmp_path / "wake")
    assert not sender.wake()
    async with AsyncExitStack() as stack:
        PipeReceiver.open(tmp_path / "wake", stack)
    assert not sender.wake()


async def test_a_flood_of_wake_ups_blocks_nobody(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        receiver = PipeReceiver.open(tmp_path / "wake", stack)
        sender = PipeSender(tmp_path / "wake")
        for _ in range(70_000):  # more than the pipe holds
            assert sender.wake()
        assert await receiver.wait(10)


async def test_a_plain_file_in_the_way_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "wake").write_text("left by a backup")
    async with AsyncExitStack() as stack:
        receiver = PipeReceiver.open(tmp_path / "wake", stack)
        PipeSender(tmp_path / "wake").wake()
        assert await receiver.wait(10)
