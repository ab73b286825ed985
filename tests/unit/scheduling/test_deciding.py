"""What becomes of firings that are due: catch-up first, then overlap, and the words for it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from anubis.domain.event import EventKind
from anubis.domain.run import RunId
from anubis.domain.schedule import MOST_CAUGHT_UP, CatchUp, Overlap, Schedule
from anubis.stages.scheduling import concluding, deciding
from anubis.stages.scheduling.concluding import Outcome
from anubis.stages.scheduling.deciding import Decision, Standing
from anubis.testing import builders
from anubis.testing.clock import NOON

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def hourly(
    overlap: Overlap = Overlap.QUEUE, catch_up: CatchUp = CatchUp.LAST, next_at: datetime = NOON
) -> Schedule:
    """Fires every full hour; the next time at noon."""
    schedule = builders.a_schedule(at=NOON - HOUR / 2, next_at=next_at)
    return dataclasses.replace(schedule, overlap=overlap, catch_up=catch_up)


def decided(schedule: Schedule, now: datetime, standing: Standing | None = None) -> Decision:
    return deciding.decide(schedule, deciding.due(schedule, now), standing or Standing(), now)


def hours(moments: tuple[datetime, ...]) -> list[int]:
    return [moment.hour for moment in moments]


# -- catch-up ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", CatchUp)
@pytest.mark.parametrize("late", [0, 1, 60])
def test_a_firing_that_is_hardly_late_is_on_time_whatever_the_policy(
    policy: CatchUp, late: int
) -> None:
    decision = decided(hourly(catch_up=policy), NOON + late * SECOND)
    assert decision.firings == (NOON,)
    assert decision.missed == ()
    assert decision.next_at == NOON + HOUR


@pytest.mark.parametrize(
    ("policy", "fired", "missed"),
    [
        (CatchUp.NONE, [], [12, 13, 14]),
        (CatchUp.LAST, [14], [12, 13]),
        (CatchUp.ALL, [12, 13, 14], []),
    ],
)
def test_after_downtime_the_policy_says_what_is_made_up_for(
    policy: CatchUp, fired: list[int], missed: list[int]
) -> None:
    decision = decided(hourly(catch_up=policy), NOON + 2.5 * HOUR)
    assert hours(decision.firings) == fired
    assert hours(decision.missed) == missed
    assert decision.next_at == NOON + 3 * HOUR


@pytest.mark.parametrize(
    ("policy", "fired"), [(CatchUp.NONE, [14]), (CatchUp.LAST, [14]), (CatchUp.ALL, [12, 13, 14])]
)
def test_a_firing_on_time_makes_up_for_those_before_it(policy: CatchUp, fired: list[int]) -> None:
    decision = decided(hourly(catch_up=policy), NOON + 2 * HOUR + SECOND)
    assert hours(decision.firings) == fired


def test_a_long_downtime_submits_a_bounded_number_and_is_quickly_decided() -> None:
    schedule = dataclasses.replace(
        hourly(catch_up=CatchUp.ALL), cron="* * * * *", next_at=datetime(1990, 1, 1, tzinfo=UTC)
    )
    decision = decided(schedule, NOON)
    assert len(decision.firings) == MOST_CAUGHT_UP
    assert decision.firings[-1] == NOON
    assert not decision.is_complete


def test_a_schedule_that_fires_rarely_is_found_after_years() -> None:
    schedule = dataclasses.replace(
        hourly(), cron="0 0 1 1 *", next_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    waiting = deciding.due(schedule, NOON)
    assert [moment.year for moment in waiting.moments] == [2020, 2021, 2022, 2023, 2024]
    assert waiting.is_complete


def test_a_promised_firing_is_due_though_cron_would_not_name_it_any_more() -> None:
    odd = NOON + timedelta(minutes=7)  # as after a change of a country's time
    assert deciding.due(hourly(next_at=odd), NOON + HOUR).moments == (odd, NOON + HOUR)


# -- overlap -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "fired", "cancels"),
    [
        (Overlap.SKIP, [], False),
        (Overlap.QUEUE, [12], False),
        (Overlap.CANCEL_PREVIOUS, [12], True),
    ],
)
def test_the_policy_says_what_happens_while_a_run_has_not_ended(
    policy: Overlap, fired: list[int], cancels: bool
) -> None:
    decision = decided(hourly(policy), NOON, Standing(is_busy=True))
    assert hours(decision.firings) == fired
    assert decision.cancels_others == cancels
    assert decision.next_at == NOON + HOUR


@pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.CANCEL_PREVIOUS])
def test_firings_made_up_for_together_do_not_overlap_either(policy: Overlap) -> None:
    decision = decided(hourly(policy, CatchUp.ALL), NOON + 2.5 * HOUR)
    assert hours(decision.firings) == [14]
    assert hours(decision.overlapping) == [12, 13]


@pytest.mark.parametrize("policy", Overlap)
def test_a_run_that_a_crash_left_belongs_to_its_firing_and_overlaps_with_nothing(
    policy: Overlap,
) -> None:
    decision = decided(hourly(policy), NOON, Standing(begun=frozenset({NOON})))
    assert decision.firings == (NOON,)
    assert decision.overlapping == ()


def test_a_firing_that_a_crash_left_counts_though_it_is_late_by_now() -> None:
    standing = Standing(begun=frozenset({NOON}))
    decision = decided(hourly(Overlap.QUEUE, CatchUp.NONE), NOON + 2.5 * HOUR, standing)
    assert hours(decision.firings) == [12]
    assert hours(decision.missed) == [13, 14]


def test_the_run_of_a_firing_has_the_same_id_whoever_makes_it() -> None:
    one, other = builders.a_schedule(1), builders.a_schedule(2)
    assert deciding.firing_id(one.id, NOON) == deciding.firing_id(one.id, NOON)
    different = {
        deciding.firing_id(one.id, NOON),
        deciding.firing_id(other.id, NOON),
        deciding.firing_id(one.id, NOON + HOUR),
    }
    assert len(different) == 3


# -- a clock that was set ------------------------------------------------------------------------


@pytest.mark.parametrize("back", [0 * HOUR, HOUR / 60, HOUR])
def test_a_clock_set_back_a_little_is_waited_for(back: timedelta) -> None:
    schedule = hourly(next_at=NOON + HOUR)  # it fired at noon
    assert deciding.mended(schedule, NOON - back) is None


def test_a_clock_that_ran_years_ahead_does_not_silence_a_schedule_for_years() -> None:
    schedule = hourly(next_at=NOON + timedelta(days=3000))
    assert deciding.mended(schedule, NOON) == NOON + HOUR


@pytest.mark.parametrize("cron", ["0 0 29 2 *", "0 0 1 1 *"])
def test_a_schedule_that_fires_rarely_is_not_taken_for_a_wrong_clock(cron: str) -> None:
    schedule = dataclasses.replace(hourly(), cron=cron)
    schedule = dataclasses.replace(schedule, next_at=deciding.next_at(schedule, NOON))
    assert deciding.mended(schedule, NOON) is None


def test_a_paused_schedule_needs_no_mending() -> None:
    schedule = dataclasses.replace(hourly(), next_at=None, paused_at=NOON)
    assert deciding.mended(schedule, NOON) is None


# -- in words ------------------------------------------------------------------------------------

RUN = RunId("018f8a3c-0000-7000-8000-000000000000")


def concluded(
    schedule: Schedule, now: datetime, standing: Standing | None = None, *, refused: str = ""
) -> concluding.Conclusion:
    decision = decided(schedule, now, standing)
    made = Outcome(runs=dict.fromkeys(decision.firings, RUN))
    if refused:
        made = Outcome(runs={}, refused=dict.fromkeys(decision.firings, refused))
    return concluding.conclude(schedule, decision, made, now)


def test_a_firing_is_told_with_its_run() -> None:
    conclusion = concluded(hourly(), NOON)
    [event] = conclusion.events
    assert event.message == f"fired run {RUN}, due at 2024-05-17 12:00 UTC"
    assert event.data == {"run": RUN}
    changed = conclusion.schedule
    assert (changed.fired, changed.last_run, changed.last_at) == (1, RUN, NOON)
    assert (changed.next_at, changed.last_note) == (NOON + HOUR, event.message)


def test_what_was_missed_is_told_and_counted() -> None:
    conclusion = concluded(hourly(), NOON + 2.5 * HOUR)
    assert [event.message for event in conclusion.events] == [
        "2 firings until 2024-05-17 13:00 UTC were missed and left out; one run makes up for them",
        f"fired run {RUN}, due at 2024-05-17 14:00 UTC and made up for",
    ]
    assert conclusion.schedule.last_note == conclusion.events[0].message


def test_what_was_left_out_is_told_and_changes_nothing_but_the_time() -> None:
    conclusion = concluded(hourly(Overlap.SKIP), NOON, Standing(is_busy=True))
    [event] = conclusion.events
    assert "left out: another run of this schedule has not ended" in event.message
    assert (conclusion.schedule.fired, conclusion.schedule.last_run) == (0, None)
    assert conclusion.schedule.last_at == NOON


def test_what_could_not_be_submitted_is_a_warning_with_the_reason() -> None:
    conclusion = concluded(hourly(), NOON, refused="there is no engine")
    [event] = conclusion.events
    assert event.kind is EventKind.WARNING
    assert event.message.endswith("became no run: there is no engine")
    assert conclusion.schedule.fired == 0
    assert conclusion.schedule.next_at == NOON + HOUR


def test_a_schedule_without_a_further_firing_says_so() -> None:
    schedule = dataclasses.replace(hourly(), cron="0 0 30 2 *")
    conclusion = concluded(schedule, NOON)
    assert conclusion.schedule.next_at is None
    assert "no further firing" in conclusion.events[-1].message
