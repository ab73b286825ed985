"""What a check found, and what to do about it."""

from __future__ import annotations

import dataclasses
import enum


class Level(enum.StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"  #: works, but measurements or comfort may suffer
    FAIL = "fail"  #: Anubis cannot work like this


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    level: Level
    found: str
    advice: str = ""  #: what to do; empty when all is well


def good(name: str, found: str) -> Finding:
    """All is well."""
    return Finding(name=name, level=Level.OK, found=found)


def doubtful(name: str, found: str, advice: str) -> Finding:
    """It works, but."""
    return Finding(name=name, level=Level.WARN, found=found, advice=advice)


def bad(name: str, found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(name=name, level=Level.FAIL, found=found, advice=advice)
