"""Whoever corrects a setting and submits again gets the corrected one.

The background runtime reads the settings when it starts, and stays for a while after its last run.
One that has nothing to do is replaced by one that knows what is in force now; one that carries runs
is left alone, for they may be at another cluster than the settings now name, and a warning says so.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from anubis.bootstrap import embedded
from anubis.bootstrap.stores import Stores
from anubis.domain.errors import AnubisError
from anubis.domain.problem import Problem, Severity
from anubis.ports.clock import Clock
from anubis.runtime import succession
from anubis.settings import loading
from anubis.settings.model import Settings

_OF_A_SERVICE = frozenset(
    (
        *("home", "host", "port", "tls_certificate", "tls_key", "requires_tokens", "audit_days"),
        *("rate_limit", "rate_burst", "max_streams", "leader_lease"),
        *("max_active_per_user", "max_schedules_per_user"),
    )
)
"""What a background runtime does not ask for; its home is ours."""


async def renewed(
    settings: Settings, kept: Stores, clock: Clock, document: str
) -> tuple[Problem, ...]:
    """Have an idle runtime with other settings leave; a warning if it stays, for it has work.

    To be called before a run is stored: it is no reason to stay.
    """
    seat = embedded.seat(settings)
    pid = succession.background(seat)
    if pid is None or not (other := _differing(settings, pid)):
        return ()
    if await kept.has_work() or not await succession.dismiss(seat, pid, clock):
        return (_warning(document, other, pid),)
    return ()


def _differing(settings: Settings, pid: int) -> list[str]:
    """The settings that a runtime has otherwise, as they are called in ``config.toml``."""
    try:
        theirs = loading.load(_environment(pid))
    except (OSError, AnubisError):  # it has left, is somebody else's, or of another version
        return []
    names = (field.name for field in dataclasses.fields(Settings))
    asked = (name for name in names if name not in _OF_A_SERVICE)
    other = [name for name in asked if getattr(theirs, name) != getattr(settings, name)]
    return [*other, *(["config.toml"] if _is_rewritten(settings) else [])]


def _is_rewritten(settings: Settings) -> bool:
    try:
        written = (settings.home / "config.toml").stat().st_mtime
        return written > settings.runtime_pid.stat().st_mtime
    except OSError:  # there is none
        return False


def _environment(pid: int) -> Mapping[str, str]:
    content = Path(f"/proc/{pid}/environ").read_bytes()
    pairs = (os.fsdecode(entry).partition("=") for entry in content.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def _warning(document: str, other: list[str], pid: int) -> Problem:
    return Problem(
        file=document,
        line=1,
        column=1,
        field="settings",
        found=f"a background runtime that was started with another {', '.join(other)}",
        expected="the same as here",
        hint=f"it has work, and goes on with its own until that is done; kill {pid} makes it leave "
        "now, and the next one has yours",
        severity=Severity.WARNING,
    )
