"""Where the process engine keeps its runs: one directory per unit, side by side.

They are flat, ``<run>`` beside ``<run>.<unit>``, because those who guard units know them by the
name of a directory alone. A run none of whose units is called ``benchmark`` may have a directory
``<run>`` too, for what its units share.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from anubis.adapters.engine.process.guardian import files
from anubis.domain.errors import NotPossible
from anubis.domain.run import RunId

_UNIT = re.compile(r"[a-z0-9-]{1,40}")


class Directories:
    """The directories of all runs of one engine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, run_id: RunId) -> Path:
        """The directory of a run, which is also that of its unit ``benchmark``.

        Raises NotPossible for a name that could lead elsewhere, or that could hold a unit's.
        """
        if not run_id or not run_id.isprintable() or "/" in run_id or "." in run_id:
            raise NotPossible(f"{run_id!r} cannot be the name of a run")
        return self.root / run_id

    def unit(self, run_id: RunId, unit: str) -> Path:
        """The directory of a unit. Raises NotPossible for names that cannot be one."""
        directory = self.run(run_id)
        if unit == files.SOLE:
            return directory
        if not _UNIT.fullmatch(unit):
            expected = "up to 40 lower-case letters, digits and dashes"
            raise NotPossible(f"{unit!r} cannot be the name of a unit: expected {expected}")
        return self.root / files.name(run_id, unit)

    def of(self, run_id: RunId) -> Sequence[Path]:
        """All that there are of a run, those of its units before the one they may share."""
        own = self.run(run_id)
        try:
            # Only names: this is asked several times for each run, among those of all others.
            names = os.listdir(self.root)  # noqa: PTH208 - as quick as can be
        except FileNotFoundError:
            return []
        beginning = f"{run_id}."
        others = sorted(name for name in names if name.startswith(beginning))
        places = [*(self.root / name for name in others), own]
        return [place for place in places if place.is_dir()]

    def runs(self) -> Sequence[RunId]:
        """Runs of which there is anything."""
        try:
            with os.scandir(self.root) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
        except FileNotFoundError:
            return []
        return sorted({RunId(files.owner(name)[0]) for name in names})


def is_used(directory: Path) -> bool:
    """Whether a unit was specified or started there; not so where units only share something."""
    place = str(directory)
    return (
        files.was_started(place)
        or files.read_json(files.live(place), files.SPEC) is not None
        or files.has_ended(place)
    )
