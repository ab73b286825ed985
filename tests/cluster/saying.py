"""Tell whoever waits what is being done."""

from __future__ import annotations

import sys


def say(words: str) -> None:
    """On the error stream: answers of commands are on the other one."""
    print(f"» {words}", file=sys.stderr, flush=True)  # noqa: T201 - this is a command
