"""The command ``anubis``, and ``python -m anubis``."""

from __future__ import annotations

import os
import sys

from anubis.entrypoints.cli import overview

_COMPLETION = "_ANUBIS_COMPLETE"
"""Set by the shell when it asks click, through a bare call, to complete a word."""


def main() -> int:
    """Answer quickly what needs nothing; load the command line for the rest."""
    answer = overview.answer(sys.argv[1:])
    if answer is None or _COMPLETION in os.environ:
        # Imported here and not above: the quick answers must not pay for click.
        from anubis.entrypoints.cli import edge

        return edge.main(sys.argv[1:])
    return _print(answer)


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        from anubis.entrypoints.cli import edge

        return edge.undelivered(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
