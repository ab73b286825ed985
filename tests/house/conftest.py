"""Reading Markdown, for the tests that hold our documents to what is really there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

Block = tuple[str, str]
"""Language and body of a fenced block."""

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def blocks(file: Path) -> list[Block]:
    """The fenced blocks of a document, in order."""
    return [(match[1], match[2]) for match in FENCE.finditer(file.read_text("utf-8"))]


def commands(file: Path) -> list[str]:
    """The command lines of a document, in order, continued lines joined.

    In a ``console`` block a command begins with ``$ `` and the rest is its output; in a ``sh``
    block every line is a command.
    """
    found = []
    for language, body in blocks(file):
        lines = body.replace("\\\n", " ").splitlines()
        if language == "console":
            found += [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        elif language == "sh":
            found += [line for line in lines if line.strip() and not line.startswith("#")]
    return found


@pytest.fixture(scope="session")
def blocks_of() -> Callable[[Path], list[Block]]:
    return blocks


@pytest.fixture(scope="session")
def commands_of() -> Callable[[Path], list[str]]:
    return commands
