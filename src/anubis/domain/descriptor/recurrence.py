"""How a benchmark that runs again and again does so: ``[schedule]``."""

from __future__ import annotations

import dataclasses

from anubis.domain.schedule import CatchUp, Overlap


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Recurrence:
    """``[schedule]``: what ``info.scheduling`` leaves open. Without a schedule it says nothing."""

    time_zone: str = "UTC"  #: an IANA name
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LAST
