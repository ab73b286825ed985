"""The table ``[schedule]``: time zones, and what a schedule does about runs that meet or miss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from anubis.domain.descriptor import SINGLE_RUN, Recurrence
from anubis.domain.schedule import CatchUp, Overlap
from anubis.stages.descriptor import wording
from anubis.stages.descriptor.kinds import Scalar, Unacceptable, as_text, choice
from anubis.stages.descriptor.reporting import Place
from anubis.stages.descriptor.shapes import Key, Table

MAX_ZONE_LENGTH: Final = 64

_ZONE: Final = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"
_NOT_ZONES: Final = ("right/", "posix/", "localtime", "posixrules", "Factory")
"""Files that lie beside the zones: other countings of time, and what one machine happens to use."""


def _time_zone(value: object, _place: Place) -> str:
    name = as_text(value).strip()
    if _is_zone(name):
        return name
    raise Unacceptable(hint=wording.did_you_mean(name, _zones()))


def _is_zone(name: str) -> bool:
    # Most descriptors have no schedule; they should not pay for the import.
    import zoneinfo

    is_name = len(name) <= MAX_ZONE_LENGTH and re.fullmatch(_ZONE[1:-1], name)
    if not is_name or name.startswith(_NOT_ZONES):
        return False
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # OSError: it names a folder
        return False
    return True


def _zones() -> list[str]:
    import zoneinfo  # as above

    names = zoneinfo.available_timezones()
    return sorted(name for name in names if not name.startswith(_NOT_ZONES))


TIME_ZONE: Final = Scalar(
    expected='the IANA name of a time zone, such as "UTC" or "Europe/Berlin"',
    convert=_time_zone,
    schema={"type": "string", "maxLength": MAX_ZONE_LENGTH, "pattern": _ZONE},
)


def _catching_up_queues(table: Mapping[str, object], place: Place) -> None:
    """Firings that are made up for are due at the same moment: they must be able to wait."""
    if table.get("catch_up") == CatchUp.ALL and table.get("overlap") != Overlap.QUEUE:
        place.child("catch_up").refuse(
            'the text "all" without overlap = "queue"',
            'overlap = "queue" beside it',
            "all that was missed is submitted at once, so that it must wait in the queue",
        )


SCHEDULE_TABLE: Final = Table(
    make=Recurrence,
    keys=(
        Key(
            name="time_zone",
            kind=TIME_ZONE,
            meaning="Where the hours of info.scheduling are hours.",
        ),
        Key(
            name="overlap",
            kind=choice(Overlap),
            meaning="What a firing does while an earlier run of the schedule has not ended.",
        ),
        Key(
            name="catch_up",
            kind=choice(CatchUp),
            meaning="Which of the firings are made up for that nobody was there to fire.",
        ),
    ),
    rules=(_catching_up_queues,),
)


def a_schedule_has_a_cron(table: Mapping[str, object], place: Place) -> None:
    """``[schedule]`` says how, ``info.scheduling`` when; alone it would do nothing."""
    info = table.get("info")
    scheduling = info.get("scheduling", SINGLE_RUN) if isinstance(info, dict) else SINGLE_RUN
    if "schedule" in table and isinstance(scheduling, str) and scheduling.strip() == SINGLE_RUN:
        place.child("schedule").refuse_key(
            "a [schedule] table for a benchmark that runs once",
            'info.scheduling with a schedule, such as "0 3 * * *"',
        )
