"""The table of moves, tested as such."""

from __future__ import annotations

import dataclasses

import pytest

from anubis.adapters.run_store import transitions
from anubis.domain import errors
from anubis.domain.run import ACTIVE, MOVES, TERMINAL, RunState
from anubis.testing import builders

S = RunState

TABLE = {
    "SUBMITTED": "FETCHING QUEUED CANCELED ERROR",
    "FETCHING": "QUEUED FAILED CANCELED ERROR",
    "QUEUED": "FETCHING STARTING CANCELED ERROR",
    "STARTING": "RUNNING FAILED CANCELED ERROR",
    "RUNNING": "FINISHING ERROR",
    "FINISHING": "SUCCEEDED FAILED CANCELED ERROR",
    "SUCCEEDED": "",
    "FAILED": "",
    "CANCELED": "",
    "ERROR": "",
}
"""Written out a second time, so that a change of the table is a decision and not a slip."""


def legal(start: RunState, *states: RunState) -> bool:
    """By the rule that every store applies."""
    run = dataclasses.replace(builders.a_run(), state=start)
    try:
        transitions.stepped(run, builders.a_step(run.id, *states))
    except errors.IllegalMove:
        return False
    return True


def reachable(start: RunState) -> set[RunState]:
    seen, waiting = {start}, [start]
    while waiting:
        new = MOVES[waiting.pop()] - seen
        seen |= new
        waiting.extend(new)
    return seen


@pytest.mark.parametrize("start", RunState)
@pytest.mark.parametrize("to", RunState)
def test_exactly_the_moves_of_the_table_are_legal(start: RunState, to: RunState) -> None:
    assert legal(start, to) is (to.value in TABLE[start.value].split())


def test_every_state_has_its_row() -> None:
    assert set(MOVES) == set(RunState)
    assert set(TABLE) == {state.value for state in RunState}


def test_every_state_is_either_active_or_terminal() -> None:
    assert set(RunState) == ACTIVE | TERMINAL
    assert not ACTIVE & TERMINAL
    assert {state for state in RunState if state.is_terminal} == TERMINAL


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_nothing_leaves_a_terminal_state(state: RunState) -> None:
    assert MOVES[state] == frozenset()


def test_every_state_is_reached_from_submitted() -> None:
    assert reachable(S.SUBMITTED) == set(RunState)


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_every_active_state_can_end_by_a_deadline_of_ours(state: RunState) -> None:
    assert S.ERROR in MOVES[state]


@pytest.mark.parametrize("state", sorted(set(RunState) - {S.QUEUED, S.FETCHING}))
def test_no_run_goes_round_in_circles(state: RunState) -> None:
    assert all(state not in reachable(after) for after in MOVES[state])


def test_only_what_waits_and_fetches_may_wait_again() -> None:
    before, after = reachable(S.STARTING), {S.QUEUED, S.FETCHING}
    assert not before & after, "nothing that was started waits again"


def test_a_program_that_ran_succeeds_only_after_its_output_was_kept() -> None:
    assert [state for state in RunState if S.SUCCEEDED in MOVES[state]] == [S.FINISHING]


def test_several_moves_are_legal_only_one_after_the_other() -> None:
    assert legal(S.SUBMITTED, *builders.PATH_TO_SUCCESS)
    assert legal(S.QUEUED)
    assert not legal(S.SUBMITTED, S.FETCHING, S.STARTING)
    assert not legal(S.SUBMITTED, S.ERROR, S.FETCHING)
