"""What every schedule store must do.

Subclass ``ScheduleStoreContract`` and give it a fixture ``store`` with a fresh, empty store.
"""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta

import pytest

from anubis.domain import errors
from anubis.domain.event import EventKind
from anubis.domain.schedule import CatchUp, Overlap, Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleQuery, ScheduleStore
from anubis.testing import builders
from anubis.testing.builders import HOUR
from anubis.testing.clock import NOON

NOBODY = ScheduleId(builders.a_run_id(999))


async def add(store: ScheduleStore, *schedules: Schedule) -> None:
    """Store new schedules, all of the default document."""
    for schedule in schedules:
        await store.add(schedule, builders.a_document(), "made")


async def page(store: ScheduleStore, query: ScheduleQuery) -> list[str]:
    """Ids of a page."""
    return [schedule.id for schedule in await store.page(query)]


class KeepingContract:
    """Schedules come in, are found again and are forgotten."""

    async def test_a_schedule_is_given_back_exactly_as_it_was_added(
        self, store: ScheduleStore
    ) -> None:
        """Every field survives."""
        schedule = dataclasses.replace(
            builders.a_schedule(next_at=NOON + HOUR),
            cron="@daily",
            time_zone="Europe/Berlin",
            overlap=Overlap.CANCEL_PREVIOUS,
            catch_up=CatchUp.ALL,
            priority=-7,
            paused_at=NOON,
            last_at=NOON - HOUR,
            last_run=builders.a_run_id(3),
            last_note="fired late",
            fired=12,
        )
        await add(store, schedule)
        assert await store.get(schedule.id) == schedule
        assert await store.document(schedule.id) == builders.a_document()

    async def test_the_code_that_schedules_need_is_told(self, store: ScheduleStore) -> None:
        """Whoever removes old archives asks before."""
        assert set(await store.scripts()) == set()
        scripts = ["", "a.tar", "b.tar", "a.tar"]
        schedules = [builders.a_schedule(number) for number in range(len(scripts))]
        for schedule, script in zip(schedules, scripts, strict=True):
            await store.add(schedule, builders.a_document(script=script), "made")
        assert (await store.document(schedules[1].id)).script == "a.tar"
        assert sorted(await store.scripts()) == ["a.tar", "b.tar"]
        await store.delete(schedules[1].id)
        await store.delete(schedules[2].id)
        assert list(await store.scripts()) == ["a.tar"]

    async def test_its_first_event_says_how_it_came(self, store: ScheduleStore) -> None:
        """History starts with the start."""
        schedule = builders.a_schedule()
        await store.add(schedule, builders.a_document(), "every hour")
        [event] = await store.events(schedule.id)
        assert (event.number, event.at, event.kind) == (1, schedule.created_at, EventKind.NOTE)
        assert (event.schedule_id, event.message) == (schedule.id, "every hour")

    async def test_adding_it_again_changes_nothing(self, store: ScheduleStore) -> None:
        """A client that heard no answer may try again."""
        schedule = builders.a_schedule()
        await add(store, schedule)
        changed = await store.replace(dataclasses.replace(schedule, fired=1))
        await add(store, schedule)
        assert await store.get(schedule.id) == changed
        assert len(await store.events(schedule.id)) == 1

    async def test_the_same_key_makes_one_schedule_for_each_submitter(
        self, store: ScheduleStore
    ) -> None:
        """Also for those who ask at the same moment; a schedule that went frees its key."""
        document = builders.a_document()
        mine = [builders.a_schedule(number, submitter="ann") for number in range(4)]
        stored = await asyncio.gather(*(store.add(one, document, "", key="k") for one in mine))
        [first] = set(stored)
        assert await store.with_key("ann", "k") == await store.get(first.id) == first
        theirs = builders.a_schedule(9, submitter="bob")
        assert await store.add(theirs, document, "", key="k") == theirs
        assert await store.with_key("ann", "other") is None
        assert await store.with_key("\udcff", "\udcff") is None
        await store.delete(first.id)
        assert await store.with_key("ann", "k") is None

    async def test_a_key_is_not_used_for_two_descriptors(self, store: ScheduleStore) -> None:
        """It was meant for one submission."""
        await store.add(builders.a_schedule(0), builders.a_document(), "", key="k")
        other = builders.a_document(b"other")
        with pytest.raises(errors.NotPossible, match="'k' was used"):
            await store.add(builders.a_schedule(1, document=other), other, "", key="k")

    async def test_the_schedules_of_one_person_are_counted_up_to_a_limit(
        self, store: ScheduleStore
    ) -> None:
        """Those of others do not count."""
        await add(store, *(builders.a_schedule(number, submitter="ann") for number in range(3)))
        await add(store, builders.a_schedule(3, submitter="bob"))
        assert [await store.count_of("ann", limit=limit) for limit in (0, 2, 9)] == [0, 2, 3]
        assert await store.count_of("eve", limit=9) == 0

    async def test_a_schedule_keeps_its_descriptor(self, store: ScheduleStore) -> None:
        """It cannot come with another one, twice with different ones, or be given one later."""
        other = builders.a_document(b"other")
        with pytest.raises(errors.NotPossible):
            await store.add(builders.a_schedule(), other, "")
        await add(store, builders.a_schedule())
        strange = builders.a_schedule(document=other)
        with pytest.raises(errors.NotPossible):
            await store.add(strange, other, "")
        with pytest.raises(errors.NotPossible):
            await store.replace(strange)
        assert await store.get(strange.id) == builders.a_schedule()

    async def test_pages_go_from_new_to_old_without_gap_or_overlap(
        self, store: ScheduleStore
    ) -> None:
        """Of everybody, or of one person."""
        schedules = [
            builders.a_schedule(number, submitter="ann" if number % 2 else "bob")
            for number in (3, 0, 4, 1, 2)
        ]
        await add(store, *schedules)
        newest_first = sorted((each.id for each in schedules), reverse=True)
        assert await page(store, ScheduleQuery(limit=2)) == newest_first[:2]
        assert await page(store, ScheduleQuery(before=newest_first[1])) == newest_first[2:]
        assert await page(store, ScheduleQuery(submitter="ann", limit=1)) == [newest_first[1]]
        rest = ScheduleQuery(submitter="ann", before=newest_first[1])
        assert await page(store, rest) == [newest_first[3]]
        assert await page(store, ScheduleQuery(submitter="eve")) == []
        assert await page(store, ScheduleQuery(limit=0)) == []

    async def test_a_schedule_is_found_by_id_prefix_and_benchmark(
        self, store: ScheduleStore
    ) -> None:
        """In any case, with or without dashes."""
        first = builders.a_schedule(0, benchmark="bert")
        last = builders.a_schedule(1000, benchmark="resnet")
        await add(store, first, last)
        for spelling in (first.id, first.id.upper(), first.id.replace("-", ""), first.id[:13]):
            assert await store.resolve(spelling) == first.id
        assert await store.resolve("resnet") == last.id

    async def test_an_ambiguous_reference_names_candidates(self, store: ScheduleStore) -> None:
        """So that the user sees what to type next."""
        schedules = [builders.a_schedule(number) for number in range(5)]
        await add(store, *schedules)
        for reference in ("resnet", schedules[0].id[:8]):
            with pytest.raises(errors.ScheduleAmbiguous, match=rf"{schedules[4].id} \(resnet\)"):
                await store.resolve(reference)

    @pytest.mark.parametrize("reference", ["", "-", "%", "bert", "ffff", "0" * 33, "\udcff"])
    async def test_what_names_no_schedule_is_not_found(
        self, store: ScheduleStore, reference: str
    ) -> None:
        """Wildcards and nonsense match nothing."""
        await add(store, builders.a_schedule())
        with pytest.raises(errors.ScheduleNotFound):
            await store.resolve(reference)

    async def test_an_unknown_schedule_is_not_found(self, store: ScheduleStore) -> None:
        """Whatever is asked about it, and no row is made by asking."""
        questions = (
            store.get(NOBODY),
            store.document(NOBODY),
            store.events(NOBODY),
            store.delete(NOBODY),
            store.replace(builders.a_schedule(999)),
        )
        for question in questions:
            with pytest.raises(errors.ScheduleNotFound):
                await question

    async def test_a_deleted_schedule_leaves_nothing_and_takes_nothing_along(
        self, store: ScheduleStore
    ) -> None:
        """Another one of the same document keeps it."""
        gone, kept = builders.a_schedule(0), builders.a_schedule(1)
        await add(store, gone, kept)
        await store.replace(gone, events=[builders.a_note()])
        await store.delete(gone.id)
        with pytest.raises(errors.ScheduleNotFound):
            await store.get(gone.id)
        assert await store.document(kept.id) == builders.a_document()
        await add(store, gone)
        assert len(await store.events(gone.id)) == 1


class FiringContract:
    """Each firing is decided once."""

    async def test_due_are_those_whose_time_has_come_the_earliest_first(
        self, store: ScheduleStore
    ) -> None:
        """The moment itself counts; those without a next time never do."""
        late = builders.a_schedule(0, next_at=NOON)
        later = builders.a_schedule(1, next_at=NOON - HOUR)
        future = builders.a_schedule(2, next_at=NOON + timedelta(microseconds=1))
        await add(store, late, later, future, builders.a_schedule(3))
        assert await store.due(NOON, limit=9) == (later, late)
        assert await store.due(NOON, limit=1) == (later,)
        assert await store.due(NOON, limit=0) == ()

    async def test_the_next_time_is_known_without_looking_at_all(
        self, store: ScheduleStore
    ) -> None:
        """None if nothing will fire."""
        assert await store.next_due() is None
        await add(store, builders.a_schedule(0))
        assert await store.next_due() is None
        soon = builders.a_schedule(1, next_at=NOON + HOUR)
        await add(store, soon, builders.a_schedule(2, next_at=NOON + 2 * HOUR))
        assert await store.next_due() == NOON + HOUR
        await store.replace(dataclasses.replace(soon, next_at=NOON + 3 * HOUR))
        assert await store.next_due() == NOON + 2 * HOUR

    async def test_a_change_is_stored_with_what_happened(self, store: ScheduleStore) -> None:
        """An event about a run names it."""
        schedule = builders.a_schedule(next_at=NOON)
        await add(store, schedule)
        fired = dataclasses.replace(
            schedule, next_at=NOON + HOUR, last_at=NOON, last_run=builders.a_run_id(), fired=1
        )
        told = [
            builders.a_note("fired", data={"run": builders.a_run_id()}),
            builders.a_note("slow", kind=EventKind.WARNING),
        ]
        after = await store.replace(fired, events=told)
        assert after == await store.get(schedule.id) == dataclasses.replace(fired, version=2)
        events = await store.events(schedule.id, after=1)
        assert [(each.number, each.message, each.run_id) for each in events] == [
            (2, "fired", builders.a_run_id()),
            (3, "slow", None),
        ]
        assert events[1].kind is EventKind.WARNING
        assert await store.events(schedule.id, after=1, limit=1) == events[:1]

    async def test_who_comes_second_changes_nothing(self, store: ScheduleStore) -> None:
        """Not even the events are stored."""
        schedule = builders.a_schedule()
        await add(store, schedule)
        first = await store.replace(dataclasses.replace(schedule, fired=1))
        assert await store.replace(schedule, events=[builders.a_note()]) is None
        assert await store.get(schedule.id) == first
        assert len(await store.events(schedule.id)) == 1

    async def test_of_many_at_the_same_moment_one_wins(self, store: ScheduleStore) -> None:
        """So that two runtimes do not fire the same run twice."""
        schedule = builders.a_schedule()
        await add(store, schedule)
        asked = [dataclasses.replace(schedule, fired=number) for number in range(8)]
        answers = await asyncio.gather(*(store.replace(each) for each in asked))
        [winner] = [answer for answer in answers if answer is not None]
        assert await store.get(schedule.id) == winner


class ScheduleStoreContract(KeepingContract, FiringContract):
    """All of it. Inherit from this one."""
