"""How much engine time each person has used lately: the measure of fairness between them.

A second counts as a second when it is used, as half of one an hour later, as a quarter after two
hours. Nothing else counts: whoever runs on eight CPUs pays the same as whoever runs on one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from anubis.domain.run import Run

HALF_LIFE = timedelta(hours=1)
"""Long enough that a morning of long runs is remembered at noon, short enough that nobody pays
tomorrow for what they did today."""

EXPECTED = 60.0
"""Seconds that a run under way counts at least. Several slots that are free at the same moment are
so shared out in turns, before anybody knows how long the runs will last."""

_MANY_PEOPLE = 1000
_NEGLIGIBLE = 0.001  # seconds
_DECAY = math.log(2) / HALF_LIFE.total_seconds()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Used:
    """Seconds used, as they count at a moment."""

    seconds: float
    at: datetime

    def by(self, now: datetime) -> float:
        return self.seconds * math.exp(-_DECAY * _seconds(self.at, now))


class Shares:
    """What people have used. Kept in memory, and rebuilt from the newest runs after a restart."""

    def __init__(self) -> None:
        self._used: dict[str, _Used] = {}

    def add(self, run: Run, now: datetime) -> None:
        """Note a run that has ended; one whose program never started has cost nothing."""
        if run.started_at is None or run.ended_at is None:
            return
        seconds = self._of(run.submitter, now) + counted(run.started_at, run.ended_at, now)
        self._used[run.submitter] = _Used(seconds=seconds, at=now)
        if len(self._used) > _MANY_PEOPLE:
            self._forget_idle(now)

    def at(
        self, now: datetime, people: Collection[str], under_way: Iterable[Run] = ()
    ) -> Mapping[str, float]:
        """What each of these people has used by ``now``, with what they have under way."""
        usage = {person: self._of(person, now) for person in people}
        for run in under_way:
            if run.submitter in usage:
                spent = counted(run.started_at, now, now) if run.started_at else 0.0
                usage[run.submitter] += max(EXPECTED, spent)
        return usage

    def _of(self, person: str, now: datetime) -> float:
        used = self._used.get(person)
        return used.by(now) if used else 0.0

    def _forget_idle(self, now: datetime) -> None:
        self._used = {
            person: used for person, used in self._used.items() if used.by(now) > _NEGLIGIBLE
        }


def counted(began: datetime, ended: datetime, now: datetime) -> float:
    """What the seconds between two moments count by ``now``: each decays since it was used."""
    left, was = (math.exp(-_DECAY * _seconds(moment, now)) for moment in (ended, began))
    return max(0.0, left - was) / _DECAY


def _seconds(earlier: datetime, later: datetime) -> float:
    """Never below zero: clocks are set."""
    return max(0.0, (later - earlier).total_seconds())
