"""Bring what one run needs, tell how it goes on, and say how the run ends if that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from anubis.domain.errors import AnubisError, DatasetInvalid, ImageUnavailable
from anubis.domain.event import NewEvent
from anubis.domain.plan import Plan
from anubis.domain.run import Cause, Outcome, RunId, RunState
from anubis.ports.clock import Clock
from anubis.ports.engine import Engine
from anubis.runtime import bringing
from anubis.runtime.bringing import Bringing
from anubis.runtime.reporting import Reporter

LOOK_EVERY = 1.0
"""Seconds between two looks at how far transfers have come."""


class Reporters:
    """What is told about the data and the images of one run."""

    def __init__(self, clock: Clock, plan: Plan) -> None:
        self.data = Reporter(clock, "fetch")
        self.images = Reporter(clock, "image")
        self._uris = tuple(dict.fromkeys(fetch.uri for fetch in plan.fetches))

    def begun(self) -> list[NewEvent]:
        """Before the first byte."""
        return self.data.begun(self._uris)

    def news(self) -> list[NewEvent]:
        """Meanwhile."""
        return [*self.data.news(), *self.images.news()]

    def done(self) -> list[NewEvent]:
        """When all is here."""
        return self.data.done(self._uris)

    def failed(self, why: str) -> list[NewEvent]:
        """When it is not, and will not be."""
        return self.data.failed(self._uris, why) if self._uris else []


class Fetch:
    """The transfers of one run. ``outcome`` says how the run ended, if it did because of them."""

    def __init__(self, run_id: RunId, plan: Plan, bringer: Bringing, engine: Engine) -> None:
        self._run_id = run_id
        self._plan = plan
        self._bringer = bringer
        self._engine = engine
        self._is_canceled = False
        self._task: asyncio.Task[Outcome | None] | None = None
        self.outcome: Outcome | None = None

    def cancel(self) -> None:
        """Stop at once: somebody no longer wants the run."""
        self._is_canceled = True
        if self._task is not None:
            self._task.cancel()

    async def run(self, reporters: Reporters) -> AsyncGenerator[Sequence[NewEvent], None]:
        """Bring everything; gives what should be told, as it happens. Closing it stops that."""
        task = self._task = asyncio.create_task(
            self._bring(reporters), name=f"fetch for {self._run_id}"
        )
        try:
            while not (await asyncio.wait([task], timeout=LOOK_EVERY))[0]:
                if news := reporters.news():
                    yield news
        finally:
            if not task.done():  # we are being stopped ourselves
                task.cancel()
                await asyncio.wait([task])
        if task.cancelled() or (self._is_canceled and task.result() is not None):
            assert self._is_canceled, "nobody else cancels it"
            reason = "canceled while what it needs was being brought"
            self.outcome = Outcome(state=RunState.CANCELED, reason=reason, cause=Cause.CANCELED)
            return
        self.outcome = task.result()
        if last := self._last_words(reporters):
            yield last

    def _last_words(self, reporters: Reporters) -> list[NewEvent]:
        if self.outcome is None:
            return reporters.done()
        return reporters.failed(self.outcome.reason)

    async def _bring(self, reporters: Reporters) -> Outcome | None:
        try:
            if self._engine.capabilities.needs_image:
                await self._engine.prepare(self._plan, reporters.images)
            if bringing.is_needed(self._plan):
                await self._bringer.bring(self._run_id, self._plan, reporters.data)
        except DatasetInvalid as error:  # what the descriptor says is not so
            return Outcome(state=RunState.FAILED, reason=str(error), cause=Cause.DATA_INVALID)
        except ImageUnavailable as error:
            return Outcome(state=RunState.ERROR, reason=str(error), cause=Cause.IMAGE_UNAVAILABLE)
        except AnubisError as error:  # it names what is not there, or does not answer
            return Outcome(state=RunState.ERROR, reason=str(error), cause=Cause.NOT_BROUGHT)
        return None
