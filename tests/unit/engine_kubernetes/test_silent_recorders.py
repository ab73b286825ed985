"""A recorder that does not answer keeps nobody from ending its unit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from anubis.adapters.engine.kubernetes import attending, kinds
from anubis.adapters.engine.kubernetes.attending import Attendant
from anubis.adapters.engine.kubernetes.places import Named, Place, Spec, StopRequest, now
from anubis.adapters.engine.kubernetes.viewing import PodView
from anubis.domain.errors import EngineUnavailable
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits
from anubis.domain.run import RunId


class _Silent:
    """A cluster whose commands begin, and then say nothing for ever."""

    @contextlib.asynccontextmanager
    async def exec(
        self, pod: str, container: str, command: Sequence[str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        del pod, container, command

        async def output() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        yield output()


async def test_a_request_to_stop_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attending, "PASS_ON_SECONDS", 0.05)
    around: Any = type("Around", (), {"cluster": _Silent()})()
    spec = Spec(
        unit="benchmark",
        workload=Named(kind=kinds.JOB, name="a"),
        objects=(),
        limits=Limits(),
        asked_at=now(),
    )
    attendant = Attendant(around, Place(tmp_path), RunId("r"), spec)
    attendant._last_pod = PodView(name="a-b")
    request = StopRequest(cause=EndCause.CANCELED, grace=timedelta(seconds=5), asked_at=now())

    with pytest.raises(EngineUnavailable, match=r"does not answer within 0\.05 s"):
        async with asyncio.timeout(10):
            await attendant._pass_on(request)
