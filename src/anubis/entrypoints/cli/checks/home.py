"""Whether this home can hold runs, and whether anything is left over in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from anubis.bootstrap import tidying
from anubis.bootstrap.application import Application
from anubis.entrypoints.cli.checks.finding import Finding, bad, doubtful, good
from anubis.entrypoints.cli.rendering import text
from anubis.runtime import locking, pending

_LITTLE, _TOO_LITTLE = 5 * 1024**3, 256 * 1024**2
"""Bytes of free space: less than the first is soon full with output, less than the second is."""


def writable(home: Path) -> Finding:
    """Whether we may write there, or create it."""
    place = next(path for path in (home, *home.parents) if path.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return good("home", str(home))
    advice = f"make {place} a folder you may write to, or set ANUBIS_HOME to another"
    return bad("home", f"{home} cannot be written", advice)


def space(home: Path) -> Finding:
    """Output and samples need room."""
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    found = f"{text.size(free)} free"
    if free < _TOO_LITTLE:
        return bad("disk", found, "make room, or set ANUBIS_HOME to a larger disk")
    if free < _LITTLE:
        return doubtful("disk", found, "make room soon: one run may write gigabytes")
    return good("disk", found)


async def runtime(application: Application) -> Finding:
    """Active runs need a living runtime; without any it may sleep."""
    is_alive = locking.is_held(application.settings.runtime_lock)
    has_work = await pending.has_work(application.store)
    if has_work and not is_alive:
        advice = "'anubis status' starts it; see " + str(application.settings.runtime_log)
        return doubtful("runtime", "not alive, though runs wait for it", advice)
    found = "alive" if is_alive else "asleep, nothing to do"
    return good("runtime", found)


async def leftovers(application: Application, *, clean: bool) -> Finding:
    """What a crash may have left behind."""
    found = await tidying.leftovers(application)
    if not found:
        return good("leftovers", "none")
    if clean:
        removed = await tidying.remove(application, found)
        return good("leftovers", f"removed those of {removed} runs")
    advice = "anubis doctor --clean removes them"
    return doubtful("leftovers", f"of {len(found)} runs that have ended", advice)
