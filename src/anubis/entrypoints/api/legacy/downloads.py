"""What the original's fetcher says about the data of a run.

A run without data has "Nothing to fetch". One with data tells of each item, from the notes that its
fetching leaves among its events (``data["fetch"]`` names the item, ``data["phase"]`` what became of
it). Whether a run has data is known from its descriptor before anything is fetched, so what is told
first never has to be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anubis.domain.event import Event, EventKind
from anubis.domain.run import RunState
from anubis.entrypoints.api.legacy import words
from anubis.entrypoints.api.legacy.words import Speaker, Status

Saying = tuple[Speaker, Status, str]

_BEGUN, _DONE, _FAILED = "begun", "done", "failed"

_INITIATING: Final = (Speaker.FETCHER, Status.PENDING, words.INITIATING)
_NOTHING: Final = (Speaker.FETCHER, Status.SUCCEEDED, words.NOTHING_TO_FETCH)
_PROCESSED: Final = (Speaker.FETCHER, Status.SUCCEEDED, words.DOWNLOADED_ALL)
_CANCELING: Final = (Speaker.FETCHER, Status.PENDING, words.CANCELING)
_NO_DOWNLOADS: Final = (Speaker.FETCHER, Status.SUCCEEDED, words.NO_DOWNLOADS)

NOTHING_TO_CANCEL: Final = (_CANCELING, _NO_DOWNLOADS)
"""What is said of something that is canceled while nothing is being fetched."""


class Downloads:
    """The data of one run, event by event. Events must be given in their order, each once."""

    def __init__(self, *, has_data: bool) -> None:
        self._has_data = has_data
        self._phases: dict[str, str] = {}  #: how far each item is
        self._is_fetching = False
        self._was_initiated = False
        self._was_concluded = False

    @property
    def _open(self) -> list[str]:
        return [item for item, phase in self._phases.items() if phase == _BEGUN]

    @property
    def have_failed(self) -> bool:
        """Whether the run cannot have its data: an item failed, or is not here at the end."""
        unfinished = any(phase != _DONE for phase in self._phases.values())
        return unfinished and not self._was_concluded

    def of_note(self, event: Event) -> Sequence[Saying]:
        """What a note says, if it is about an item."""
        item, phase = event.data.get("fetch"), str(event.data.get("phase"))
        if event.kind is not EventKind.NOTE or not isinstance(item, str):
            return ()
        if phase not in (_BEGUN, _DONE, _FAILED) or self._phases.get(item) == phase:
            return ()  # how far it is, or what an attempt before said
        self._phases[item] = phase
        return self._began() + _of_item(item, phase)

    def of_state(self, state: RunState) -> Sequence[Saying]:
        """What the fetcher says when a run reaches a state that is not its end."""
        came_from_fetching, self._is_fetching = self._is_fetching, state is RunState.FETCHING
        if state is RunState.FETCHING or not self._has_data:
            return self._began() if self._has_data else self._concluded(state, _NOTHING)
        if state is RunState.QUEUED and not came_from_fetching:
            return self._began()  # it waits until its data may be fetched
        return self._concluded(state, _PROCESSED)

    def of_cancel(self) -> Sequence[Saying]:
        """What is said when somebody wants the run to stop."""
        return (_CANCELING,) if self._open else NOTHING_TO_CANCEL

    def of_canceled(self) -> Sequence[Saying]:
        """What is said when the run has stopped."""
        stopped = [_told(item, Status.CANCELED, words.DOWNLOAD_CANCELED) for item in self._open]
        return [*stopped, _aborting(Status.CANCELED)] if stopped else ()

    def of_failure(self, reason: str) -> Sequence[Saying]:
        """What is said when the run ends because its data cannot be had. Only its end tells why,
        so that items which failed wait for it; with them, the others were stopped.
        """
        failed = [item for item, phase in self._phases.items() if phase == _FAILED]
        stopped = self._open if failed else []
        return [
            *(
                _told(one, Status.FAILED, words.DOWNLOAD_FAILED, reason)
                for one in failed or self._open
            ),
            *(_told(one, Status.CANCELED, words.DOWNLOAD_CANCELED) for one in stopped),
            _aborting(Status.FAILED),
        ]

    @property
    def is_concluded(self) -> bool:
        """Whether all is said, and the next service may speak."""
        return self._was_concluded

    def _began(self) -> tuple[Saying, ...]:
        if self._was_initiated:
            return ()
        self._was_initiated = True
        return (_INITIATING,)

    def _concluded(self, state: RunState, saying: Saying) -> tuple[Saying, ...]:
        if self._was_concluded or state in (RunState.SUBMITTED, RunState.FETCHING):
            return ()
        self._was_concluded = True
        return (saying,)


def _of_item(item: str, phase: str) -> tuple[Saying, ...]:
    if phase == _BEGUN:
        return (_told(item, Status.PENDING, words.PREPARING),)
    if phase == _DONE:
        return (_told(item, Status.PENDING, words.DOWNLOADED),)
    return ()


def _told(item: str, status: Status, template: str, message: str = "") -> Saying:
    # Sayings are templates; a name or a message with braces in it must stay as it is.
    text = template.format(src=_literal(item), message=_literal(message))
    return Speaker.FETCHER, status, text


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _aborting(status: Status) -> Saying:
    return Speaker.FETCHER, status, words.ABORTING
