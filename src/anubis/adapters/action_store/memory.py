"""Actions in a plain dictionary. Product code, not a mock: it keeps every promise of the port
except surviving the process. No method awaits anything, so each is atomic on its event loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from anubis.domain.action import Action, ActionId, ActionKind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryActionStore:
    """An action store that lives and dies with its process."""

    def __init__(self) -> None:
        self._actions: dict[ActionId, Action] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator[MemoryActionStore]:
        """Give an empty store; there to be exchangeable with stores that must be closed."""
        yield cls()

    async def add(self, action: Action) -> None:
        """See the port."""
        self._actions.setdefault(action.id, action)

    async def get(self, action_id: ActionId) -> Action | None:
        """See the port."""
        return self._actions.get(action_id)

    async def commands(self, target: str) -> Sequence[Action]:
        """See the port."""
        about = [each for each in self._of(ActionKind.COMMAND) if each.target == target]
        return tuple(sorted(about, key=lambda action: (action.at, action.id)))

    async def submissions(
        self, client_id: str, *, after: tuple[int, str], limit: int
    ) -> Sequence[Action]:
        """See the port."""
        sent = [each for each in self._of(ActionKind.SUBMISSION) if each.client_id == client_id]
        later = sorted((each for each in sent if _place(each) > after), key=_place)
        return tuple(later[: max(0, limit)])

    def _of(self, kind: ActionKind) -> Sequence[Action]:
        return [action for action in self._actions.values() if action.kind is kind]


def _place(action: Action) -> tuple[int, str]:
    return (action.at - _EPOCH) // timedelta(milliseconds=1), action.id
