"""In which order runs leave the queue. Pure, so that all stores agree."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from anubis.domain.run import Run


def place(run: Run) -> tuple[int, str]:
    """What decides within a group: sorts below that of every run that leaves later."""
    return -run.priority, run.id


def group(run: Run) -> tuple[str, str, str]:
    """Whose turn it is when this run leaves: a person's runs of one benchmark on one engine."""
    return run.submitter, run.benchmark, run.engine


def heads(runs: Iterable[Run], each: int) -> tuple[Run, ...]:
    """The first ``each`` of every group."""
    ordered = sorted(runs, key=lambda run: (group(run), place(run)))
    groups = itertools.groupby(ordered, key=group)
    first = (itertools.islice(members, max(0, each)) for _, members in groups)
    return tuple(itertools.chain.from_iterable(first))
