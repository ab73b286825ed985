"""``single_node``: one program, which decides."""

from __future__ import annotations

from anubis.domain.plan import SOLE
from anubis.stages.planning import programs
from anubis.stages.planning.layout import Draft, Layout, Task, definitions


def draft(task: Task) -> Draft:
    """The program of ``[ml]``."""
    return Draft(programs=(programs.benchmark(task.descriptor, task.place, SOLE, task.data),))


def layout(task: Task) -> Layout:
    """One unit."""
    (program,) = draft(task).programs
    return Layout(
        units=(programs.unit(program, task.place),),
        deciding=SOLE,
        metrics=tuple(definitions(task.descriptor.output)),
    )
