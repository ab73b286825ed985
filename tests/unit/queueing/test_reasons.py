"""What people read about a run that waits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from anubis.domain.demand import Capacity, Demand
from anubis.domain.run import Run, RunState
from anubis.stages.queueing import fitting, reasons
from anubis.stages.queueing.reasons import Standing
from anubis.testing import builders
from anubis.testing.clock import NOON

GIB = 2**30
WIDE = Capacity(slots=4, cpus=4, memory_bytes=8 * GIB, gpus=2)
NARROW = dataclasses.replace(WIDE, slots=1)


def a_run(number: int = 0, **demand: float) -> Run:
    asked = Demand(**demand)  # type: ignore[arg-type]
    return dataclasses.replace(builders.a_run(number), demand=asked)


def reason(run: Run, *under_way: Run, ahead: int = 0, capacity: Capacity | None = WIDE) -> str:
    known = {run.engine: capacity} if capacity else {}
    standing = Standing(engine=run.engine, capacities=known, under_way=under_way, ahead=ahead)
    return reasons.reason(run, standing)


BUSY = a_run(9)
OTHER = dataclasses.replace(BUSY, benchmark="bert")
ALONE = a_run(9, exclusive=True)


@pytest.mark.parametrize(
    ("run", "under_way", "ahead", "sentence"),
    [
        (a_run(gpus=1), [a_run(9, gpus=2)], 2, "waits for 1 GPU; 2 runs ahead"),
        (a_run(gpus=2), [a_run(9, gpus=1)], 0, "waits for 2 GPUs (1 free)"),
        (a_run(cpus=2.5), [a_run(9, cpus=3)], 1, "waits for 2.5 CPUs (1 free); 1 run ahead"),
        (
            a_run(memory_bytes=4 * GIB, gpus=1),
            [a_run(9, memory_bytes=5 * GIB, gpus=2)],
            0,
            "waits for 1 GPU and 4 GiB of memory (3 GiB free)",
        ),
        (a_run(), [BUSY] * 4, 3, "waits for a free slot; 3 runs ahead"),
        (
            a_run(exclusive=True),
            [BUSY],
            0,
            "waits for the engine to be free: it wants it for itself; 1 run is under way",
        ),
        (
            a_run(exclusive=True),
            [BUSY, BUSY],
            1,
            (
                "waits for the engine to be free: it wants it for itself; 2 runs are under way; "
                "1 run ahead"
            ),
        ),
        (a_run(), [ALONE], 0, "waits for the engine to be free: a run has it for itself"),
        (
            a_run(concurrency=1),
            [BUSY],
            0,
            "its benchmark has 1 run under way, at most 1 at once",
        ),
        (a_run(concurrency=1), [OTHER], 0, "is about to start"),
        (a_run(), [], 1000, "waits for its turn; 1,000 runs ahead"),
        (a_run(), [], 1001, "waits for its turn; more than 1,000 runs ahead"),
        (a_run(), [], 0, "is about to start"),
        (
            a_run(cpus=8),
            [],
            0,
            "cannot start: it asks for 8 CPUs (4 free), and the engine has no more",
        ),
    ],
)
def test_the_sentence_says_what_is_missing_and_who_is_before(
    run: Run, under_way: Sequence[Run], ahead: int, sentence: str
) -> None:
    assert reason(run, *under_way, ahead=ahead) == sentence


def test_with_one_slot_it_is_the_slot_that_one_waits_for() -> None:
    """There every run has the engine for itself, and nobody asked for that in particular."""
    waiting = a_run(exclusive=True)
    assert reason(waiting, ALONE, ahead=1, capacity=NARROW) == "waits for a free slot; 1 run ahead"


def test_what_runs_elsewhere_is_not_waited_for() -> None:
    elsewhere = dataclasses.replace(ALONE, engine="docker")
    assert reason(a_run(), elsewhere) == "is about to start"


def test_a_run_of_an_unknown_engine_is_told_so() -> None:
    assert reason(a_run(), capacity=None).startswith("there is no engine 'process' here")


def test_a_canceled_run_waits_for_nothing_else() -> None:
    canceled = dataclasses.replace(a_run(), cancel_requested_at=NOON)
    assert reason(canceled, BUSY) == "is being canceled"


def test_what_can_never_fit_is_told_with_field_found_and_expected() -> None:
    demand = Demand(cpus=8, memory_bytes=64 * GIB, gpus=3)
    assert list(fitting.obstacles(demand, WIDE, "process")) == [
        "hardware.cpus: found 8, expected at most 4: the engine 'process' has no more",
        "hardware.memory: found 64 GiB, expected at most 8 GiB: the engine 'process' has no more",
        "hardware.gpus: found 3, expected at most 2: the engine 'process' has no more",
    ]


def test_what_fits_exactly_is_no_obstacle() -> None:
    demand = Demand(cpus=4, memory_bytes=8 * GIB, gpus=2, exclusive=True, concurrency=1)
    assert list(fitting.obstacles(demand, WIDE, "process")) == []


def test_engines_of_one_machine_are_in_each_others_way() -> None:
    shared = dataclasses.replace(WIDE, machine="here")
    known = {"process": shared, "docker": shared}
    other = dataclasses.replace(ALONE, engine="docker")
    standing = Standing(engine="process", capacities=known, under_way=[other], ahead=0)
    said = reasons.reason(a_run(), standing)
    assert said == "waits for the engine to be free: a run has it for itself"


def test_a_run_that_fetches_says_so() -> None:
    run = dataclasses.replace(a_run(), state=RunState.FETCHING)
    assert reason(run, run) == "brings what it needs"
