"""Moments as people write them on the command line: a date, a date with a time, or an age."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_AGE = re.compile(r"(\d{1,6})([mhdw])")
_SPANS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}

Written = datetime | timedelta
"""A moment, or how long ago it was."""


class Moment(click.ParamType[Written]):
    """``2026-03-01``, ``2026-03-01T12:00``, or an age such as ``36h``."""

    name = "moment"

    def convert(
        self, value: str | Written, param: click.Parameter | None, ctx: click.Context | None
    ) -> Written:
        """Read it. Without a time zone, that of this machine is meant."""
        if not isinstance(value, str):
            return value
        if age := _AGE.fullmatch(value):
            return int(age[1]) * _SPANS[age[2]]
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            expected = "a date (2026-03-01), a moment (2026-03-01T12:00) or an age (90m, 36h, 7d)"
            self.fail(f"found {value!r}, expected {expected}", param, ctx)


def absolute(written: Written | None, now: datetime) -> datetime | None:
    """The moment meant, seen from ``now``."""
    if not isinstance(written, timedelta):
        return written
    try:
        return now - written
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
