"""Remember what clients of the original wire sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from anubis.domain.action import Action, ActionId


class ActionStore(Protocol):
    """Methods are atomic. Every method may raise StoreUnavailable; retrying is safe."""

    async def add(self, action: Action) -> None:
        """Store an action. One with an id that is there already changes nothing."""
        ...

    async def get(self, action_id: ActionId) -> Action | None:
        """The action, if a client of the original wire sent it."""
        ...

    async def commands(self, target: str) -> Sequence[Action]:
        """The commands about a run or schedule, oldest first."""
        ...

    async def submissions(
        self, client_id: str, *, after: tuple[int, str], limit: int
    ) -> Sequence[Action]:
        """Submissions of a client, oldest first, above ``after``: milliseconds since 1970, and an
        id that decides among those of one millisecond.
        """
        ...
