"""Turn the progress of transfers into events of the run: enough to watch, not one per megabyte."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta

from anubis.domain.dataset import Progress, shown
from anubis.domain.event import EventKind, NewEvent
from anubis.domain.size import spoken
from anubis.ports.clock import Clock

STEPS = 10
"""A transfer of known size is told at every tenth."""

AT_LEAST_EVERY = timedelta(minutes=1)
"""A slow one, or one of unknown size, is told this often."""


@dataclasses.dataclass(slots=True)
class _Told:
    """What was last said about one transfer."""

    at: datetime
    step: int = 0


class Reporter:
    """Collects progress; give it as a ``Report``. ``subject`` is what events call the transfers."""

    def __init__(self, clock: Clock, subject: str) -> None:
        self._clock = clock
        self._subject = subject
        self._latest: dict[str, Progress] = {}
        self._told: dict[str, _Told] = {}

    def __call__(self, progress: Progress) -> None:
        """Note how far a transfer has come."""
        self._latest[progress.uri] = progress

    def begun(self, uris: Sequence[str]) -> list[NewEvent]:
        """Say that these are going to be brought."""
        return [self._event(uri, "begun", f"brings {shown(uri)}") for uri in uris]

    def news(self) -> list[NewEvent]:
        """What is worth telling by now."""
        return [
            self._event(uri, "progress", _sentence(progress))
            for uri, progress in self._latest.items()
            if self._is_worth_telling(progress)
        ]

    def done(self, uris: Sequence[str]) -> list[NewEvent]:
        """Say that these are here."""
        return [self._event(uri, "done", f"{shown(uri)} is here") for uri in uris]

    def failed(self, uris: Sequence[str], why: str) -> list[NewEvent]:
        """Say that those failed of which the error speaks; all, if it speaks of none."""
        guilty = [uri for uri in uris if shown(uri) in why] or uris
        return [self._event(uri, "failed", f"{shown(uri)} could not be brought") for uri in guilty]

    def _is_worth_telling(self, progress: Progress) -> bool:
        now = self._clock.now()
        told = self._told.setdefault(progress.uri, _Told(at=now))
        total = progress.total_bytes
        step = progress.done_bytes * STEPS // total if total else 0
        if step <= told.step and now < told.at + AT_LEAST_EVERY:
            return False
        told.at, told.step = now, step
        return True

    def _event(self, uri: str, phase: str, message: str) -> NewEvent:
        progress = self._latest.get(uri)
        return NewEvent(
            at=self._clock.now(),
            kind=EventKind.NOTE,
            message=message,
            data={
                self._subject: shown(uri),
                "phase": phase,
                "done_bytes": progress.done_bytes if progress else 0,
                "total_bytes": progress.total_bytes if progress else None,
            },
        )


def _sentence(progress: Progress) -> str:
    done, total = spoken(progress.done_bytes), progress.total_bytes
    how_far = f"{done} of {spoken(total)}" if total else done
    return f"{shown(progress.uri)}: {how_far}"
