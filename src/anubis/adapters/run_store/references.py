"""Find out which run a person means: a full id, the start of one, or ``last``.

Pure, so that all stores understand people alike. A store only has to find ids between two texts.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence

from anubis.domain import errors, identity
from anubis.domain.run import RunId
from anubis.ports.run_reader import RunQuery

LAST = "last"
NAMED = 3
"""How many candidates an ambiguous prefix is answered with: enough to see what to type next."""

ABOVE_ALL_IDS = "g"
"""Sorts after every id, and after every continuation of a prefix: ids are hex digits and dashes."""

_HEX = re.compile(r"[0-9a-f]{1,32}")
_DASHES_AFTER = (8, 12, 16, 20)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """A range of ids, without its end."""

    start: str
    end: str


def bounds(query: RunQuery) -> Bounds:
    """The ids that a query's cursor and times let pass."""
    ends = [ABOVE_ALL_IDS]
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
    """The start of an id in canonical spelling: lower case, dashes where ids have them.

    People paste ids in capitals, or without dashes from places that strip them.
    """
    digits = reference.strip().lower().replace("-", "")
    if not _HEX.fullmatch(digits):
        raise errors.RunNotFound(
            f"{reference!r} names no run: give an id, the start of one, or {LAST!r}"
        )
    cuts = (0, *_DASHES_AFTER, 32)
    parts = [digits[start:end] for start, end in itertools.pairwise(cuts)]
    return "-".join(part for part in parts if part)


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
