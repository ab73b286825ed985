"""Commands: text as users write it, into words as programs get them."""

from __future__ import annotations

import re
import shlex
from typing import Final

from anubis.domain.errors import UserError

SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox"})
"""Programs that expand variables and commands themselves."""

_SHEBANG: Final = "#!"


def split(text: str) -> tuple[str, ...]:
    """The words, as a shell would split them. Raises UserError if a quote is never closed.

    Unlike ``shlex`` alone, take a backslash at the end of a line for what it is to a shell.
    """
    try:
        return tuple(shlex.split(text.replace("\\\n", "")))
    except ValueError:
        raise UserError("a quote is opened and never closed") from None


def name_of(program: str) -> str:
    """What a program is called, wherever it lies."""
    return program.rpartition("/")[2]


def is_script(text: str) -> bool:
    """Whether the text is no command but a whole script, which says what it is to be run by."""
    return text.lstrip().startswith(_SHEBANG)


def script(text: str) -> str:
    """A script as it was meant: not indented as in the descriptor, and without blanks at line ends.

    The original stripped every line on both sides, which no language with indentation survives.
    Blanks behind a backslash had no effect there, so that scripts rely on it.
    """
    first, _, rest = text.strip().partition("\n")
    lines = [line.rstrip() for line in rest.split("\n")]
    margin = min((_indentation(line) for line in lines if line), default=0)
    return "\n".join([first.rstrip(), *(line[margin:] for line in lines)]).rstrip() + "\n"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def interpreter(text: str) -> tuple[str, ...]:
    """By what a script is run, as the kernel reads its first line: a path and one argument."""
    line = text.partition("\n")[0].removeprefix(_SHEBANG).strip()
    return tuple(re.split(r"[ \t]+", line, maxsplit=1)) if line else ("/bin/sh",)
