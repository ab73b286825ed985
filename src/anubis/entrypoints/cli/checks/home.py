"""Whether this home can hold runs, and whether anything is left over in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from anubis.bootstrap import embedded, tidying
from anubis.bootstrap.local import LocalApplication
from anubis.domain.errors import AnubisError, TemporaryError, UserError
from anubis.entrypoints.cli.checks.finding import Finding, bad, doubtful, good
from anubis.entrypoints.cli.rendering import text
from anubis.runtime import locking, pending, succession
from anubis.settings import loading
from anubis.settings.model import Settings

_LITTLE, _TOO_LITTLE = 5 * 1024**3, 256 * 1024**2
"""Bytes of free space: less than the first is soon full with output, less than the second is."""


def writable(home: Path) -> Finding:
    """Whether we may write there, or create it."""
    place = _nearest(home)
    if place.is_dir() and os.access(place, os.R_OK | os.W_OK | os.X_OK):
        return good("home", str(home))
    advice = f"make {place} a folder you may write to, or set ANUBIS_HOME to another"
    return bad("home", f"{home} cannot be read and written", advice)


def settings(home: Path, environ: Mapping[str, str]) -> tuple[Settings, Finding]:
    """The settings in force, or the defaults and what is wrong with those written down."""
    try:
        return loading.load(environ), good("settings", "as written, or default")
    except UserError as error:
        advice = f"mend what it names, or remove {home / 'config.toml'}; defaults are used here"
        return Settings(home=home), bad("settings", str(error), advice)


def store(settings: Settings, error: AnubisError) -> Finding:
    """What keeps the store from being opened."""
    if isinstance(error, TemporaryError):
        return bad("store", str(error), "try again; if it stays so, see what else uses it")
    advice = f"move {settings.database}* away, or set ANUBIS_HOME to another folder"
    return bad("store", str(error), advice)


def space(home: Path) -> Finding:
    """Output and samples need room."""
    place = _nearest(home)
    free = shutil.disk_usage(place).free
    found = f"{text.size(free)} free"
    if free < _TOO_LITTLE:
        return bad("disk", found, "make room, or set ANUBIS_HOME to a larger disk")
    if free < _LITTLE:
        return doubtful("disk", found, "make room soon: one run may write gigabytes")
    return good("disk", found)


async def runtime(application: LocalApplication) -> Finding:
    """Active runs and schedules need a living runtime; without any it may sleep."""
    is_alive = locking.is_held(application.settings.runtime_lock)
    has_work = await pending.has_work(application.store, application.schedule_store)
    if has_work and not is_alive:
        advice = "'anubis status' starts it; see " + str(application.settings.runtime_log)
        return doubtful("runtime", "not alive, though runs or schedules wait for it", advice)
    if service := succession.incumbent(embedded.seat(application.settings)):
        return good("runtime", f"alive: the service at {service.address}")
    found = "alive" if is_alive else "asleep, nothing to do"
    return good("runtime", found)


async def leftovers(application: LocalApplication, *, clean: bool) -> Finding:
    """What a crash may have left behind."""
    found = await tidying.leftovers(application)
    if not found.runs:
        return good("leftovers", "none")
    if clean:
        removed = await tidying.remove(application, found)
        return good("leftovers", f"removed those of {removed} run{'' if removed == 1 else 's'}")
    advice = "anubis doctor --clean removes them"
    are = "run that has" if len(found.runs) == 1 else "runs that have"
    return doubtful("leftovers", f"of {len(found.runs)} {are} ended", advice)


def _nearest(home: Path) -> Path:
    """The home itself, or the folder in which it would have to be made."""
    # Not Path.exists: it fails for what is hidden in a folder of another user.
    return next(path for path in (home, *home.parents) if os.access(path, os.F_OK))
