"""The environment that runs get when nobody's shell is there to give one.

A service or a runtime that fires a schedule has an environment of its own: of whoever started it,
with whatever secrets were set there. Runs of others must not see that. They get what a program
needs to find its way about: where programs are, who it runs as, which language, which time zone.
"""

from __future__ import annotations

from collections.abc import Mapping

KEPT = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TZ", "USER"})
KEPT_PREFIX = "LC_"


def service_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a run gets from the environment of the process that submits it for somebody else."""
    return {
        name: value
        for name, value in environ.items()
        if name in KEPT or name.startswith(KEPT_PREFIX)
    }
