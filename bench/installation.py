"""A temporary home with a running runtime, for benches that measure the whole of Anubis."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from anubis.bootstrap import embedded
from anubis.bootstrap.application import Application, Submission
from anubis.bootstrap.local import LocalApplication
from anubis.domain.document import Document
from anubis.domain.run import Run
from anubis.runtime import locking
from anubis.settings import loading
from anubis.settings.model import Settings

NOTHING = Document(
    name="nothing.toml",
    directory="",
    content=b"""\
spec_version = "0.1.0"

[info]
description = "Does nothing: what remains is our overhead"
execution_engine = "process"

[ml]
benchmark_code = "true"
""",
)


@contextlib.asynccontextmanager
async def installation(*, slots: int, more: str = "") -> AsyncIterator[LocalApplication]:
    """A fresh home whose runtime is up and has carried its first run; with more settings, TOML."""
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        # In the file and not only in our own settings: the runtime reads them for itself.
        Path(folder, "config.toml").write_text(f"slots = {slots}\n{more}")
        settings = loading.load({"ANUBIS_HOME": folder})
        try:
            async with embedded.application(settings) as application:
                await run_to_end(application, NOTHING)
                yield application
        finally:
            _stop_runtime(settings)


async def submit(application: Application, document: Document) -> Run:
    """Hand in a run with our own environment."""
    submission = Submission(document=document, submitter="bench", environment=os.environ)
    return (await application.submit(submission)).run


async def run_to_end(application: Application, document: Document) -> Run:
    """Hand in a run and watch it to its end."""
    run = await submit(application, document)
    async for snapshot in application.watch(run.id):
        run = snapshot.run
    assert run.outcome is not None, "a watched run has ended"
    return run


def _stop_runtime(settings: Settings) -> None:
    """Ask the runtime of our own home to leave, and wait until it has."""
    with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.kill(int(settings.runtime_pid.read_text()), signal.SIGTERM)
    give_up = time.monotonic() + 20
    while locking.is_held(settings.runtime_lock) and time.monotonic() < give_up:
        time.sleep(0.02)
