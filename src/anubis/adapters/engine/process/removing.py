"""Forget runs: their directory on the disk, and what they have in memory."""

from __future__ import annotations

import shutil
from pathlib import Path

from anubis.adapters.engine.process.guardian import files


def delete(directory: Path) -> None:
    """Delete all that is kept of one run."""
    for place in {files.live(str(directory)), str(directory)}:
        shutil.rmtree(place, ignore_errors=True)


def forget_strays(root: Path) -> None:
    """Delete the live names of runs below ``root`` whose own directory is gone."""
    memory = files.memory()
    if memory is None:
        return
    mark = Path(files.live(f"{root}/")).name
    for place in Path(memory).glob(f"{mark}*"):
        if not (root / place.name.removeprefix(mark)).is_dir():
            shutil.rmtree(place, ignore_errors=True)
