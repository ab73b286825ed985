"""Own every task: each has a name, a guard and an end.

The one place that catches everything, because a defect in one run must not take the others
down. It logs the traceback and tells the owner, who must bring the run to a truthful end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Self

import structlog

Work = Callable[[], Coroutine[None, None, None]]
"""What a task does. Called when the task begins, so that one canceled before leaves nothing."""

Failure = Callable[[Exception], Awaitable[None]]
"""Called with what a task died of. Must not raise."""


class Supervisor:
    """Starts tasks and waits for them at the end. Use as an asynchronous context manager."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("anubis.runtime")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, work: Work, *, name: str, failed: Failure) -> asyncio.Task[None]:
        """Run ``work`` as a task; if it dies of an exception, log it and call ``failed``."""
        task = asyncio.create_task(self._guard(work, name, failed), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guard(self, work: Work, name: str, failed: Failure) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the one place that sees everything
            # First the run, then the log: writing that may fail too, on a disk that is full.
            await self._tell(failed, error, name)
            self._log.error("task_died", task=name, exc_info=error)

    async def _tell(self, failed: Failure, error: Exception, name: str) -> None:
        try:
            await failed(error)
        except Exception:  # noqa: BLE001 - as above; a handler's defect ends here
            self._log.exception("failure_handler_died", task=name)
