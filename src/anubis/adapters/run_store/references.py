"""Find out which run a person means: a full id, the start of one, or ``last``.

Pure, so that all stores understand people alike. A store only has to find ids between two texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from anubis.domain import errors, identity
from anubis.domain.run import RunId
from anubis.ports.run_reader import RunQuery

LAST = "last"
NAMED = 3
"""How many candidates an ambiguous prefix is answered with: enough to see what to type next."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """A range of ids, without its end."""

    start: str
    end: str


def bounds(query: RunQuery) -> Bounds:
    """The ids that a query's cursor and times let pass."""
    ends = [identity.ABOVE_ALL_IDS]
    if query.before is not None:
        ends.append(query.before)
    if query.until is not None:
        ends.append(identity.earliest(query.until))
    start = "" if query.since is None else identity.earliest(query.since)
    return Bounds(start=start, end=min(ends))


def is_last(reference: str) -> bool:
    """Whether the newest run is meant, whichever it is."""
    return reference.strip().lower() == LAST


def prefix(reference: str) -> str:
    """The start of an id in canonical spelling. Raises RunNotFound if it cannot be one."""
    canonical = identity.prefix(reference)
    if canonical is None:
        raise errors.RunNotFound(
            f"{reference!r} names no run: give an id, the start of one, or {LAST!r}"
        )
    return canonical


def newest(candidates: Sequence[RunId]) -> RunId:
    """The first of ``candidates``, or the error that says there is none."""
    if not candidates:
        raise errors.RunNotFound("there are no runs yet")
    return candidates[0]


def only(reference: str, candidates: Sequence[RunId]) -> RunId:
    """The one candidate. ``candidates`` are newest first, and at most ``NAMED + 1`` are needed."""
    if not candidates:
        raise errors.RunNotFound(f"no run has an id that starts with {reference!r}")
    if len(candidates) > 1:
        more = ", …" if len(candidates) > NAMED else ""
        named = ", ".join(candidates[:NAMED])
        raise errors.RunAmbiguous(f"several runs start with {reference!r}: {named}{more}")
    return candidates[0]
