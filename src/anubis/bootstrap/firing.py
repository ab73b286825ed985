"""What fires the schedules of an installation, in the background or inside a service.

Apart from ``scheduling``, because commands that look at schedules need none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from anubis.bootstrap import scheduling
from anubis.bootstrap.local import LocalApplication
from anubis.domain.run import Run, RunId
from anubis.domain.schedule import Schedule
from anubis.runtime.firing import Desk, Firer
from anubis.runtime.supervising import Supervisor
from anubis.stages.scheduling import concluding


def firer(
    application: LocalApplication,
    supervisor: Supervisor,
    expecting: Callable[[], None] = lambda: None,
) -> Firer:
    """Fires the schedules of an installation. Start its ``keep_firing`` as a task.

    ``expecting`` is called when there is a firing to wait for.
    """

    async def submitted(schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        occasion = f"by its schedule, due at {concluding.shown(moment)}"
        run = await scheduling.submit_run(application, schedule, occasion, run_id)
        await application.wake_runtime()
        return run

    desk = Desk(
        schedules=application.schedule_store,
        runs=application.store,
        clock=application.clock,
        submit=submitted,
        expecting=expecting,
    )
    return Firer(desk, supervisor)
