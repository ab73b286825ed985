"""What every action store must do.

Subclass ``ActionStoreContract`` and give it a fixture ``store`` with a fresh, empty store.
"""

from __future__ import annotations

from datetime import timedelta

from anubis.domain.action import Action, ActionId
from anubis.ports.action_store import ActionStore
from anubis.testing import builders
from anubis.testing.clock import NOON

MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
NOON_MILLIS = int(NOON.timestamp() * 1000)
START = (0, "")


async def submissions(
    store: ActionStore, after: tuple[int, str] = START, limit: int = 9
) -> list[Action]:
    """What the default client sent."""
    return list(await store.submissions("client", after=after, limit=limit))


class ActionStoreContract:
    """All of it."""

    async def test_an_action_is_given_back_exactly_as_it_was_sent(self, store: ActionStore) -> None:
        """Envelope and all."""
        action = builders.a_submission(at=NOON + MICROSECOND, envelope='{"tos": "ö"}')
        command = builders.a_command(target=action.id)
        await store.add(action)
        await store.add(command)
        assert await store.get(action.id) == action
        assert await store.get(command.id) == command
        assert await store.get(ActionId("nobody")) is None

    async def test_what_is_sent_twice_is_kept_once(self, store: ActionStore) -> None:
        """As it came first."""
        action = builders.a_submission()
        await store.add(action)
        await store.add(builders.a_submission(client_id="another"))
        assert await store.get(action.id) == action
        assert await submissions(store) == [action]

    async def test_commands_are_those_about_one_thing_oldest_first(
        self, store: ActionStore
    ) -> None:
        """Not those about another, and no submission."""
        late = builders.a_command(0, target="run", at=NOON + MILLISECOND)
        early = builders.a_command(1, target="run")
        for action in (late, early, builders.a_command(2, target="other"), builders.a_submission()):
            await store.add(action)
        assert await store.commands("run") == (early, late)
        assert await store.commands("") == ()

    async def test_submissions_of_a_client_are_read_in_parts(self, store: ActionStore) -> None:
        """Those of one millisecond by their ids, whatever the microseconds say."""
        first = builders.a_submission(1, at=NOON + 9 * MICROSECOND)
        second = builders.a_submission(2, at=NOON)
        third = builders.a_submission(0, at=NOON + MILLISECOND)
        foreign = builders.a_submission(3, client_id="another")
        for action in (third, foreign, second, builders.a_command(target="run"), first):
            await store.add(action)
        assert await submissions(store) == [first, second, third]
        assert await submissions(store, limit=1) == [first]
        assert await submissions(store, (NOON_MILLIS, first.id)) == [second, third]
        assert await submissions(store, (NOON_MILLIS, second.id)) == [third]
        assert await submissions(store, (NOON_MILLIS + 1, third.id)) == []
        assert await submissions(store, (10**30, "")) == []
        assert await submissions(store, limit=0) == []
