"""How runs come in and are found again, alone and in lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from anubis.domain import errors
from anubis.domain.event import EventKind
from anubis.domain.run import RunState
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.testing import builders
from anubis.testing.builders import PLAN
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import (
    ANNA,
    NOBODY,
    a_leased_run,
    add,
    an_ended_run,
    page,
    take,
)


class AddingContract:
    """How runs come in, and how they are found again."""

    async def test_a_run_is_given_back_exactly_as_it_was_added(self, store: RunStore) -> None:
        """Every field survives."""
        run = builders.a_run(labels={"team": "vision", "gpu": "none"}, family="nightly")
        await add(store, run)
        assert await store.get(run.id) == run

    async def test_the_first_event_says_that_the_run_was_submitted(self, store: RunStore) -> None:
        """History starts with the start."""
        await add(store, builders.a_run())
        [event] = await store.events(builders.a_run_id())
        assert (event.number, event.kind, event.message) == (1, EventKind.STATE, "submitted")
        assert event.data == {"from": None, "to": "SUBMITTED"}

    async def test_adding_the_same_run_again_changes_nothing(self, store: RunStore) -> None:
        """A client that heard no answer may try again."""
        run_id = await a_leased_run(store)
        before = await store.get(run_id)
        await add(store, builders.a_run())
        assert await store.get(run_id) == before
        assert len(await store.events(run_id)) == 1

    async def test_an_id_cannot_be_used_for_two_descriptors(self, store: RunStore) -> None:
        """The first one stays."""
        await add(store, builders.a_run())
        other = builders.a_document(b"other")
        with pytest.raises(errors.NotPossible):
            await store.add(builders.a_run(document=other), other, PLAN, "again")
        assert await store.document(builders.a_run_id()) == builders.a_document()

    async def test_a_run_starts_in_submitted_and_with_its_own_document(
        self, store: RunStore
    ) -> None:
        """Defects of the caller are refused before anything is stored."""
        running = dataclasses.replace(builders.a_run(), state=RunState.RUNNING)
        with pytest.raises(errors.IllegalMove):
            await add(store, running)
        with pytest.raises(errors.NotPossible):
            await store.add(builders.a_run(), builders.a_document(b"other"), PLAN, "")
        assert await store.page(RunQuery()) == ()

    async def test_documents_keep_bytes_and_paths_that_are_not_text(self, store: RunStore) -> None:
        """Names come from a file system, which knows only bytes."""
        document = builders.a_document(b"\x00\xff", name="a\udcff.toml", directory="/d\udc80")
        run = builders.a_run(document=document)
        await store.add(run, document, PLAN, "odd \udcff")
        assert await store.document(run.id) == document
        assert len(await store.events(run.id)) == 1

    async def test_runs_of_one_descriptor_have_each_the_code_they_came_with(
        self, store: RunStore
    ) -> None:
        """The bytes of a descriptor are kept once, what came beside them is not."""
        coded = builders.a_document(script="a.tar")
        plain, other = builders.a_run(0), builders.a_run(1)
        await store.add(plain, builders.a_document(), PLAN, "")
        await store.add(other, coded, PLAN, "")
        assert await store.document(plain.id) == builders.a_document()
        assert await store.document(other.id) == coded

    async def test_a_run_is_found_by_id_prefix_and_last(self, store: RunStore) -> None:
        """In any case, with or without dashes."""
        first, last = builders.a_run(0), builders.a_run(1000)
        await add(store, last, first)
        assert await store.resolve("last") == last.id
        assert await store.resolve(" LAST ") == last.id
        for spelling in (first.id, first.id.upper(), first.id.replace("-", ""), first.id[:13]):
            assert await store.resolve(spelling) == first.id

    async def test_an_ambiguous_prefix_names_candidates(self, store: RunStore) -> None:
        """So that the user sees what to type next."""
        runs = [builders.a_run(number) for number in range(6)]
        await add(store, *runs)
        with pytest.raises(errors.RunAmbiguous, match=runs[5].id):
            await store.resolve(runs[0].id[:8])

    @pytest.mark.parametrize("reference", ["", "-", "ffff", "%", "_", "g", "last run", "0" * 33])
    async def test_what_names_no_run_is_not_found(self, store: RunStore, reference: str) -> None:
        """Wildcards and nonsense match nothing."""
        with pytest.raises(errors.RunNotFound):
            await store.resolve("last")
        await add(store, builders.a_run())
        with pytest.raises(errors.RunNotFound):
            await store.resolve(reference)

    async def test_questions_about_an_unknown_run_are_answered_with_not_found(
        self, store: RunStore
    ) -> None:
        """All of them, and no row is made by asking."""
        questions = (
            store.get(NOBODY),
            store.events(NOBODY),
            store.document(NOBODY),
            store.plan(NOBODY),
            store.fingerprint(NOBODY),
            store.summaries(NOBODY),
            store.delete(NOBODY),
            store.request_cancel(NOBODY, now=NOON, by="user"),
        )
        for question in questions:
            with pytest.raises(errors.RunNotFound):
                await question

    async def test_every_change_gives_another_token_and_reading_does_not(
        self, store: RunStore
    ) -> None:
        """A watcher that polls the token misses nothing."""
        tokens = [store.change_token()]
        await add(store, builders.a_run())
        tokens.append(store.change_token())
        await take(store)
        tokens.append(store.change_token())
        await store.apply(ANNA, builders.a_step(builders.a_run_id(), RunState.FETCHING))
        tokens.append(store.change_token())
        assert len(set(tokens)) == len(tokens)
        await store.page(RunQuery())
        assert store.change_token() == tokens[-1]


class ListingContract:
    """Pages, filters, counts."""

    async def test_pages_go_from_new_to_old_without_gap_or_overlap(self, store: RunStore) -> None:
        """Whatever the order of adding."""
        runs = [builders.a_run(number) for number in (3, 0, 4, 1, 2)]
        await add(store, *runs)
        newest_first = sorted((run.id for run in runs), reverse=True)
        assert await page(store, limit=2) == newest_first[:2]
        assert await page(store, limit=2, before=newest_first[1]) == newest_first[2:4]
        assert await page(store, limit=2, before=newest_first[3]) == newest_first[4:]
        assert await page(store, limit=2, before=newest_first[4]) == []
        assert await page(store, limit=0) == []

    async def test_every_filter_that_is_given_must_hold(self, store: RunStore) -> None:
        """Alone and together."""
        nightly = builders.a_run(0, benchmark="bert", labels={"team": "nlp"}, family="nightly")
        other = builders.a_run(1, benchmark="bert", labels={"team": "nlp", "gpu": "a"})
        third = builders.a_run(2, labels={"team": "nlp"}, family="nightly")
        await add(store, nightly, other, third)
        team = ("team", "nlp")
        assert await page(store, benchmark="bert") == [other.id, nightly.id]
        assert await page(store, labels=[team]) == [third.id, other.id, nightly.id]
        assert await page(store, labels=[team, ("gpu", "a")]) == [other.id]
        assert await page(store, labels=[("team", "n%")]) == []
        assert await page(store, family="nightly") == [third.id, nightly.id]
        assert await page(store, family="nightly", labels=[team], before=third.id) == [nightly.id]
        assert await page(store, benchmark="bert", labels=[team], limit=1) == [other.id]
        assert await page(store, benchmark="bert", family="nightly", labels=[team]) == [nightly.id]
        assert await page(store, benchmark="resnet", labels=[("gpu", "a")]) == []

    async def test_states_filter_alone_and_with_a_benchmark(self, store: RunStore) -> None:
        """Several states mean any of them."""
        ended = await an_ended_run(store, 0)
        waiting = builders.a_run(1, benchmark="bert")
        leased = builders.a_run(2)
        await add(store, waiting, leased)
        both = {RunState.SUBMITTED, RunState.SUCCEEDED}
        assert await page(store, states=both) == [leased.id, waiting.id, ended]
        assert await page(store, states=both, limit=2) == [leased.id, waiting.id]
        assert await page(store, states=both, benchmark="resnet") == [leased.id, ended]
        assert await page(store, states={RunState.SUCCEEDED}) == [ended]
        assert await page(store, states={RunState.FAILED}) == []

    async def test_counts_follow_every_move(self, store: RunStore) -> None:
        """Adding, moving and deleting."""
        ended = await an_ended_run(store, 0)
        await add(store, builders.a_run(1))
        assert _present(await store.counts()) == {RunState.SUCCEEDED: 1, RunState.SUBMITTED: 1}
        await store.delete(ended)
        assert _present(await store.counts()) == {RunState.SUBMITTED: 1}

    async def test_active_gives_the_oldest_runs_that_have_not_ended(self, store: RunStore) -> None:
        """Held or not."""
        await an_ended_run(store, 0)
        runs = [builders.a_run(number) for number in (2, 1, 3)]
        await add(store, *runs)
        await take(store)
        assert [run.id for run in await store.active(2)] == [runs[1].id, runs[0].id]


def _present(counts: Mapping[RunState, int]) -> Mapping[RunState, int]:
    return {state: count for state, count in counts.items() if count}
