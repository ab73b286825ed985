"""The answers that need no command: ``anubis --help`` and ``anubis version``.

click alone costs three bare interpreter starts. These two questions are the ones people and
shell prompts ask most, so they are answered before click is imported. click's own group prints
the same text, see ``lazy``.
"""

from __future__ import annotations

import anubis
from anubis.entrypoints.cli.verbs import SECTIONS

_HEAD = """\
Usage: anubis COMMAND [OPTIONS] [ARGUMENTS]

  Measure machine-learning systems: one TOML file in, numbers you can trust out.
"""

_TAIL = """\
Options:
  -h, --help       Show this page; after a command, the help of that command.
  -v, --version    Show the version.

A RUN is named by its id, by any unique prefix of it, or by 'last'.
Start with 'anubis init', then 'anubis run descriptor.toml'.
"""

_COLUMN = 17
_HELP: tuple[list[str], ...] = (["--help"], ["-h"], ["help"], [])
_VERSION = (["version"], ["--version"], ["-v"])


def help_page() -> str:
    """Everything ``anubis`` can do, on one page."""
    return "\n".join([_HEAD, *map(_section, SECTIONS), _TAIL])


def version_line() -> str:
    """Name and version."""
    return f"anubis {anubis.__version__}\n"


def answer(arguments: list[str]) -> str | None:
    """The text for questions that need no command; None for all others."""
    if arguments in _HELP:
        return help_page()
    if arguments in _VERSION:
        return version_line()
    return None


def _section(section: tuple[str, tuple[tuple[str, str, str], ...]]) -> str:
    title, verbs = section
    lines = [f"  {name:<{_COLUMN}}{does}" for name, _, does in verbs]
    return "\n".join([f"{title}:", *lines, ""])
