"""Programs of others to compare with, installed on demand into an environment of their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PATIENCE = 600
"""Seconds for pip to bring everything; mlflow has about eighty dependencies."""


def program(name: str) -> Path | None:
    """The path of a peer's program, or None (and a line that says why) if it cannot be had."""
    folder = _folder()
    if not (folder / ".complete").exists() and not _install(folder):
        return None
    return folder / "bin" / name


def _folder() -> Path:
    """Named by what it holds, so that changed requirements make a new one."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return Path(cache) / "anubis-bench" / f"peers-{digest}"


def _install(folder: Path) -> bool:
    print(f"installing {REQUIREMENTS.name} into {folder} (once) ...", flush=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    steps = (
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, "install", "-r", str(REQUIREMENTS)],
    )
    try:
        for step in steps:
            subprocess.run(step, check=True, timeout=PATIENCE, capture_output=True, text=True)
    except (subprocess.SubprocessError, OSError) as error:
        reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
        print(f"skipped the peers: they could not be installed ({reason})")
        return False
    (folder / ".complete").touch()
    return True
