"""What exit codes mean. The same for every command."""

from __future__ import annotations

from collections.abc import Mapping

from anubis.domain.run import RunState

BAD_USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130

_ENDINGS: Mapping[RunState, int] = {
    RunState.SUCCEEDED: 0,
    RunState.FAILED: 1,
    RunState.ERROR: UNREACHABLE,
    RunState.CANCELED: INTERRUPTED,
}


def of(state: RunState) -> int:
    """The exit code that tells how a run ended."""
    return _ENDINGS[state]
