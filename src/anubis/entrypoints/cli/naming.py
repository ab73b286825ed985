"""Names of things inside a run, as users give them: known, or answered with those that are."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from anubis.domain.errors import UserError
from anubis.entrypoints.cli.rendering import text


def must_be_known(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise UserError for the first name that the run does not have."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {_enumerated(known)}"
            raise UserError(f"the run has no {kind} {name!r}; {hint}")


def _enumerated(known: Collection[str]) -> str:
    return ", ".join(sorted(set(known), key=text.naturally)) or "none so far"
