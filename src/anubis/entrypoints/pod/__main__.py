"""``python3 -m anubis.entrypoints.pod``; see the package."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Final

from anubis.bootstrap import podding
from anubis.domain.dataset import Progress, shown
from anubis.domain.errors import AnubisError, DatasetInvalid
from anubis.domain.observation import EndCause
from anubis.entrypoints.pod import orders

VARIABLE: Final = "ANUBIS_FETCH"
LAST_WORDS: Final = Path("/dev/termination-log")
MOST_BYTES: Final = 4096
"""That the cluster keeps of a container's last words; half of a JSON object would be none."""

TELL_SECONDS: Final = 5.0


def main(words: list[str]) -> int:
    """Do what the words say; the exit code."""
    if words != ["fetch"]:
        sys.stderr.write(f"found {' '.join(words)!r}, expected: fetch\n")
        return 2
    try:
        order = orders.parse(os.environ[VARIABLE])
        asyncio.run(podding.bring(order, Telling()))
    except DatasetInvalid as error:
        return _failed(EndCause.DATA_INVALID, str(error))
    except AnubisError as error:
        return _failed(EndCause.NOT_BROUGHT, str(error))
    except (ValueError, KeyError, TypeError) as error:
        message = f"{VARIABLE} cannot be read: {type(error).__name__}: {error}"
        return _failed(EndCause.NOT_BROUGHT, message)
    return 0


class Telling:
    """Says how far transfers have come, each of them every few seconds."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def __call__(self, progress: Progress) -> None:
        """One step of one transfer."""
        now = time.monotonic()
        if now < self._told.get(progress.uri, 0.0) + TELL_SECONDS:
            return
        self._told[progress.uri] = now
        of = f" of {progress.total_bytes:,}" if progress.total_bytes is not None else ""
        print(f"{shown(progress.uri)}: {progress.done_bytes:,}{of} bytes", flush=True)  # noqa: T201


def _failed(cause: EndCause, message: str) -> int:
    """Tell the engine, which reads a container's last words, and people, who read its log."""
    sys.stderr.write(f"{message}\n")
    with contextlib.suppress(OSError):
        LAST_WORDS.write_bytes(last_words(cause, message))
    return 1


def last_words(cause: EndCause, message: str) -> bytes:
    """As much of the message as fits, in whatever script it is written."""
    told = message[:MOST_BYTES]
    while True:
        content = {"cause": cause.value, "message": told}
        words = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        if len(words) <= MOST_BYTES:
            return words
        told = told[: len(told) * 9 // 10]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
