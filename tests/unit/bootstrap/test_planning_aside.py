"""A large descriptor does not keep others waiting while it is planned."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap import local, submitting
from anubis.bootstrap.application import Submission
from anubis.domain.descriptor import Descriptor
from anubis.domain.document import Document
from anubis.settings.model import Settings
from anubis.testing.clock import ManualClock

TOML = """\
spec_version = "0.1.0"
info.description = "d"
ml.benchmark_code = "echo {words}"
"""


@pytest.mark.parametrize(("words", "is_aside"), [(1, False), (local.INLINE_BYTES, True)])
async def test_a_large_descriptor_is_planned_in_a_thread_of_its_own(
    monkeypatch: pytest.MonkeyPatch, words: int, is_aside: bool
) -> None:
    threads = []
    engine_of = submitting.engine_of

    def noted(descriptor: Descriptor) -> str:
        threads.append(threading.get_ident())
        return engine_of(descriptor)

    monkeypatch.setattr(submitting, "engine_of", noted)
    content = TOML.format(words=words * "x ").encode()
    document = Document(name="d.toml", directory="/", content=content)

    await _application().plan(Submission(document=document, environment={}, submitter="ada"))

    assert [thread != threading.get_ident() for thread in threads] == [is_aside]


def _application() -> local.LocalApplication:
    clock = ManualClock()

    async def wake() -> None:
        """There is no runtime to wake."""

    return local.LocalApplication(
        settings=Settings(home=Path("/nowhere")),
        clock=clock,
        store=MemoryRunStore(),
        schedule_store=MemoryScheduleStore(),
        logs=MemoryLogStore(),
        series=MemorySeriesStore(),
        script_store=MemoryScriptStore(clock),
        engines={"process": PROCESS},
        wake_runtime=wake,
    )
