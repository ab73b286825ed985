"""Which runs leave the queue: rules for single choices, and properties of whole queues."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from anubis.domain.demand import Capacity, Demand
from anubis.domain.run import Run, RunId, RunState
from anubis.stages.queueing import choosing, fitting
from anubis.stages.queueing.choosing import Situation
from anubis.stages.queueing.shares import EXPECTED, Shares
from anubis.testing import builders
from anubis.testing.clock import NOON

ENGINE = "process"
SMALL = Capacity(slots=4, cpus=4, memory_bytes=4 * 2**30, gpus=2)


def a_waiting_run(
    number: int,
    *,
    user: str = "ann",
    benchmark: str = "resnet",
    priority: int = 0,
    demand: Demand | None = None,
    engine: str = ENGINE,
) -> Run:
    return dataclasses.replace(
        builders.a_run(number, benchmark=benchmark),
        submitter=user,
        engine=engine,
        priority=priority,
        demand=demand or Demand(),
    )


def choose(
    candidates: Sequence[Run],
    *,
    under_way: Sequence[Run] = (),
    usage: dict[str, float] | None = None,
    capacity: Capacity = SMALL,
) -> list[Run]:
    situation = Situation(capacities={ENGINE: capacity}, under_way=under_way, usage=usage or {})
    return choosing.choose(candidates, situation)


def slots(number: int) -> Capacity:
    return dataclasses.replace(SMALL, slots=number)


def test_higher_priority_goes_first_whatever_was_used() -> None:
    old = a_waiting_run(1, user="ann")
    urgent = a_waiting_run(2, user="bob", priority=5)
    assert choose([old, urgent], usage={"bob": 9999.0}, capacity=slots(1)) == [urgent]


def test_among_equals_whoever_used_the_least_goes_first() -> None:
    old = a_waiting_run(1, user="ann")
    new = a_waiting_run(2, user="bob")
    assert choose([old, new], usage={"ann": 100.0, "bob": 50.0}, capacity=slots(1)) == [new]


def test_among_the_runs_of_one_person_the_oldest_goes_first() -> None:
    runs = [a_waiting_run(number) for number in (3, 1, 2)]
    assert [run.id for run in choose(runs)] == sorted(run.id for run in runs)


def test_slots_that_are_free_at_once_are_shared_out_in_turns() -> None:
    ann = [a_waiting_run(number, user="ann") for number in range(4)]
    bob = [a_waiting_run(number, user="bob") for number in range(4, 8)]
    assert Counter(run.submitter for run in choose([*ann, *bob])) == {"ann": 2, "bob": 2}


def test_an_exclusive_run_waits_for_an_empty_engine_and_keeps_it_empty() -> None:
    alone = a_waiting_run(1, demand=Demand(exclusive=True))
    later = a_waiting_run(2)
    busy = a_waiting_run(0)
    assert choose([alone, later], under_way=[busy]) == []
    assert choose([alone, later]) == [alone]
    assert choose([later], under_way=[alone]) == []


def test_a_run_in_front_keeps_what_it_asks_for_and_leaves_the_rest() -> None:
    """Whoever waits for GPUs does not stop those who want none, and is not overtaken for them."""
    busy = a_waiting_run(0, demand=Demand(gpus=1))
    both = a_waiting_run(1, demand=Demand(gpus=2, cpus=3))
    one_gpu = a_waiting_run(2, demand=Demand(gpus=1))
    two_cpus = a_waiting_run(3, demand=Demand(cpus=2))
    one_cpu = a_waiting_run(4, demand=Demand(cpus=1))
    assert choose([both, one_gpu, two_cpus, one_cpu], under_way=[busy]) == [one_cpu]


def test_only_the_first_in_front_keeps_a_slot_free() -> None:
    """A row of runs that all wait for the same GPU does not keep the machine idle."""
    busy = a_waiting_run(0, demand=Demand(gpus=2))
    row = [a_waiting_run(number, demand=Demand(gpus=1)) for number in range(1, 9)]
    others = [a_waiting_run(number) for number in range(9, 12)]
    assert choose([*row, *others], under_way=[busy]) == others[:2]


def test_a_benchmark_at_its_limit_holds_back_only_itself() -> None:
    busy = a_waiting_run(0)
    held = a_waiting_run(1, demand=Demand(concurrency=1))
    same = a_waiting_run(2)
    other = a_waiting_run(3, benchmark="bert")
    assert choose([held, same, other], under_way=[busy]) == [other]


def test_a_limit_counts_the_runs_chosen_in_the_same_moment() -> None:
    runs = [a_waiting_run(number, demand=Demand(concurrency=2)) for number in range(4)]
    assert choose(runs) == runs[:2]


def test_what_can_never_fit_blocks_nobody() -> None:
    """Its engine was made smaller after it was submitted."""
    giant = a_waiting_run(1, demand=Demand(cpus=64))
    usual = a_waiting_run(2)
    assert choose([giant, usual]) == [usual]


def test_runs_of_an_engine_that_is_not_there_are_taken_up() -> None:
    """Carrying them gives the error that names the engines there are."""
    lost = a_waiting_run(1, engine="docker", demand=Demand(exclusive=True))
    busy = a_waiting_run(0, demand=Demand(exclusive=True))
    assert choose([lost], under_way=[busy]) == [lost]


def test_engines_do_not_share_their_room() -> None:
    capacities = {"a": slots(1), "b": slots(1)}
    busy = a_waiting_run(0, engine="a", demand=Demand(exclusive=True))
    first, second = a_waiting_run(1, engine="a"), a_waiting_run(2, engine="b")
    situation = Situation(capacities=capacities, under_way=[busy], usage={})
    assert choosing.choose([first, second], situation) == [second]


def test_tenths_of_cpus_add_up() -> None:
    tenths = [a_waiting_run(number, demand=Demand(cpus=0.1)) for number in range(10)]
    capacity = Capacity(slots=99, cpus=1, memory_bytes=0, gpus=0)
    assert len(choose(tenths, capacity=capacity)) == 10


demands = some.builds(
    Demand,
    cpus=some.sampled_from([0.0, 0.5, 1.0, 3.0, 5.0]),
    memory_bytes=some.sampled_from([0, 2**30, 3 * 2**30]),
    gpus=some.integers(0, 3),
    exclusive=some.booleans(),
    concurrency=some.sampled_from([None, None, 1, 2]),
)
waiting_runs = some.lists(
    some.builds(
        lambda user, benchmark, priority, demand: (user, benchmark, priority, demand),
        some.sampled_from(["ann", "bob", "eve"]),
        some.sampled_from(["resnet", "bert"]),
        some.integers(-1, 1),
        demands,
    ),
    max_size=12,
).map(
    lambda parts: [
        a_waiting_run(number, user=user, benchmark=benchmark, priority=priority, demand=demand)
        for number, (user, benchmark, priority, demand) in enumerate(parts)
    ]
)


def check_engine(under_way: Sequence[Run], capacity: Capacity = SMALL) -> None:
    """What must hold of the runs under way at every moment."""
    asked = [run.demand for run in under_way]
    assert len(asked) <= capacity.slots
    assert sum(demand.cpus for demand in asked) <= capacity.cpus
    assert sum(demand.memory_bytes for demand in asked) <= capacity.memory_bytes
    assert sum(demand.gpus for demand in asked) <= capacity.gpus
    assert len(asked) == 1 or not any(demand.exclusive for demand in asked)


@given(waiting_runs, some.dictionaries(some.sampled_from(["ann", "bob"]), some.floats(0, 1e6)))
def test_a_choice_never_asks_for_more_than_there_is(
    runs: list[Run], usage: dict[str, float]
) -> None:
    first = choose(runs, usage=usage)
    check_engine(first)
    rest = [run for run in runs if run not in first]
    check_engine([*first, *choose(rest, under_way=first, usage=usage)])


@given(waiting_runs)
def test_choosing_again_starts_nothing_more(runs: list[Run]) -> None:
    """A choice takes all that may start; the next one depends on something having ended."""
    first = choose(runs)
    rest = [run for run in runs if run not in first]
    # As the worker has it: what is under way counts as used.
    usage = Counter[str]()
    for run in first:
        usage[run.submitter] += int(EXPECTED)
    again = choose(rest, under_way=first, usage={**usage})
    assert again == [] or any(run.demand.concurrency for run in runs)


@given(some.lists(some.integers(-3, 3), max_size=20), some.integers(1, 6))
def test_no_chosen_run_has_a_lower_priority_than_one_that_waits(
    priorities: list[int], free: int
) -> None:
    runs = [a_waiting_run(number, priority=each) for number, each in enumerate(priorities)]
    chosen = choose(runs, capacity=slots(free))
    waiting = [run for run in runs if run not in chosen]
    assert len(chosen) == min(free, len(runs))
    assert min((run.priority for run in chosen), default=9) >= max(
        (run.priority for run in waiting), default=-9
    )


class Queue:
    """A queue in simulated time: runs come at their moments, last as long as they last."""

    def __init__(self, lasts: Callable[[Run], float], capacity: Capacity = SMALL) -> None:
        self.now = NOON
        self.waiting: list[Run] = []
        self.under_way: list[Run] = []
        self.started: dict[RunId, float] = {}  #: seconds since the beginning
        self.used: defaultdict[str, float] = defaultdict(float)
        self.shares = Shares()
        self._lasts = lasts
        self._capacity = capacity

    def start(self) -> None:
        people = {run.submitter for run in self.waiting}
        usage = dict(self.shares.at(self.now, people, self.under_way))
        chosen = choose(
            self.waiting, under_way=self.under_way, usage=usage, capacity=self._capacity
        )
        for run in chosen:
            self.waiting.remove(run)
            self.started[run.id] = (self.now - NOON).total_seconds()
            running = dataclasses.replace(run, state=RunState.RUNNING, started_at=self.now)
            self.under_way.append(running)
        check_engine(self.under_way, self._capacity)

    def step(self) -> None:
        """Go to the next end of a run, and choose again."""
        run = min(self.under_way, key=self._end)
        self.now = NOON + timedelta(seconds=self._end(run))
        self.under_way.remove(run)
        ended = dataclasses.replace(run, state=RunState.SUCCEEDED, ended_at=self.now)
        self.shares.add(ended, self.now)
        self.used[run.submitter] += self._lasts(run)
        self.start()

    def _end(self, run: Run) -> float:
        return self.started[run.id] + self._lasts(run)


@given(waiting_runs.filter(bool), some.randoms(use_true_random=False))
def test_every_run_starts_and_no_engine_is_ever_overfull(
    runs: list[Run], chance: random.Random
) -> None:
    fitting_runs = [run for run in runs if fitting.can_fit(run.demand, SMALL)]
    lengths = {run.id: chance.uniform(1, 100) for run in runs}
    queue = Queue(lambda run: lengths[run.id])
    queue.waiting = list(runs)
    queue.start()
    while queue.under_way:
        queue.step()
    assert set(queue.started) == {run.id for run in fitting_runs}


@given(waiting_runs.filter(bool), some.lists(some.integers(1, 50), min_size=12, max_size=12))
def test_those_behind_never_delay_the_run_in_front(runs: list[Run], lengths: list[int]) -> None:
    """The first in order starts at the same moment, whether others wait behind it or not."""
    alone = [run for run in runs[:6] if fitting.can_fit(run.demand, SMALL)]
    others = [dataclasses.replace(run, priority=-5, benchmark="other") for run in runs[6:]]
    lasts = {run.id: float(length) for run, length in zip(runs, lengths, strict=False)}

    def start_of_the_first(waiting: Sequence[Run]) -> float | None:
        queue = Queue(lambda run: lasts[run.id])
        queue.under_way = [dataclasses.replace(run, started_at=NOON) for run in busy]
        queue.started = dict.fromkeys((run.id for run in busy), 0.0)
        queue.waiting = list(waiting)
        queue.start()
        while front.id not in queue.started and queue.under_way:
            queue.step()
        return queue.started.get(front.id)

    if not alone:
        return
    *rest, front = alone
    unlimited = dataclasses.replace(front.demand, concurrency=None)  # a limit keeps no room free
    front = dataclasses.replace(front, priority=100, demand=unlimited)
    busy = choose(rest)
    assert start_of_the_first([front]) == start_of_the_first([front, *others])


@settings(max_examples=20)
@given(some.integers(1, 4), some.integers(1, 60), some.integers(2, 40))
def test_a_big_run_is_not_overtaken_for_ever(free: int, length: int, ahead: int) -> None:
    """An endless stream of small runs of others, and one that wants the engine for itself."""
    queue = Queue(lambda _: float(length), slots(free))
    queue.waiting = [a_waiting_run(number, user="bob") for number in range(ahead)]
    queue.start()
    alone = a_waiting_run(1000, user="ann", demand=Demand(exclusive=True))
    queue.waiting.append(alone)
    for number in range(2000, 2100):
        queue.waiting.append(a_waiting_run(number, user="bob"))
        queue.step()
    assert queue.started[alone.id] <= 2 * length


@pytest.mark.parametrize("free", [1, 2, 3])
def test_people_with_short_and_with_long_runs_get_the_same_time(free: int) -> None:
    lengths = {"ann": 7.0, "bob": 300.0}
    queue = Queue(lambda run: lengths[run.submitter], slots(free))
    numbers = itertools.count()
    while queue.now - NOON < timedelta(hours=12):
        for user in lengths:
            have = sum(run.submitter == user for run in queue.waiting)
            queue.waiting += [a_waiting_run(next(numbers), user=user) for _ in range(4 - have)]
        if queue.under_way:
            queue.step()
        else:
            queue.start()
    assert 0.45 < queue.used["ann"] / sum(queue.used.values()) < 0.55


def test_a_person_who_comes_late_is_not_owed_the_past() -> None:
    """Whoever was away gets half from then on, not everything until both have used the same."""
    queue = Queue(lambda _: 60.0, slots(1))
    queue.waiting = [a_waiting_run(number, user="ann") for number in range(2000)]
    queue.start()
    while queue.now - NOON < timedelta(hours=8):
        queue.step()
    queue.used.clear()
    queue.waiting += [a_waiting_run(number, user="bob") for number in range(2000, 4000)]
    until = queue.now + timedelta(hours=4)
    while queue.now < until:
        queue.step()
    share = queue.used["ann"] / sum(queue.used.values())
    assert 0.25 < share < 0.5


def test_engines_of_one_machine_share_its_room() -> None:
    shared = dataclasses.replace(slots(1), machine="here")
    runs = [a_waiting_run(0), a_waiting_run(1, engine="docker")]
    situation = Situation(capacities={ENGINE: shared, "docker": shared}, under_way=[], usage={})
    assert choosing.choose(runs, situation) == runs[:1]
    busy = dataclasses.replace(situation, under_way=runs[1:])
    assert choosing.choose(runs[:1], busy) == []
