"""From values to shapes, with what only the service knows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from anubis.bootstrap.service import Service
from anubis.domain.document import Fingerprint
from anubis.domain.run import Run
from anubis.stages.presentation import shapes


async def run(here: Service, run: Run) -> shapes.RunShape:
    """A run, and why it waits if it does."""
    [shape] = await runs(here, [run])
    return shape


async def runs(here: Service, runs: Sequence[Run]) -> list[shapes.RunShape]:
    """Runs, and why those of them that wait do."""
    now = here.application.clock.now()
    reasons = await here.application.waitings(runs)
    return [shapes.run_shape(run, now, reasons.get(run.id, "")) for run in runs]


def environment(fingerprint: Fingerprint | None) -> shapes.EnvironmentShape | None:
    """The environment of a run, once it is known."""
    if fingerprint is None:
        return None
    return shapes.EnvironmentShape(
        machine=json.loads(fingerprint.machine), moment=json.loads(fingerprint.moment)
    )
