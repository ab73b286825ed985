"""How much all archives may take together. Pure, so that all stores say the same."""

from __future__ import annotations

from typing import Final

from anubis.domain.errors import TooMuch

MOST_KEPT: Final = 20 * 1024**3
"""Bytes of all archives, where nobody has set it."""


def demand_room(name: str, size: int, *, kept: int, most: int) -> None:
    """Raise TooMuch unless an archive of ``size`` bytes fits beside those that are ``kept``."""
    if kept + size > most:
        raise TooMuch(
            f"script archive {name} finds no room: archives take {kept:,} bytes, and may take "
            f"{most:,}. Those that nobody uses are removed by and by; whoever runs the service can "
            "raise the limit (scripts_bytes, ANUBIS_SCRIPTS_SIZE)"
        )


def demand_bounded(name: str, size: int, *, most: int) -> None:
    """Raise TooMuch if an archive is larger than what can be sent on."""
    if size > most:
        raise TooMuch(
            f"script archive {name} has {size:,} bytes, and at most {most:,} can be sent to where "
            "the run would be; put large files into the image, or name them in [data]"
        )
