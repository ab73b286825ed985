"""Which Python a program runs on, and what is installed there. Asked once, remembered on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from anubis.domain.plan import Unit

ANSWER_SECONDS = 20.0
"""A cold interpreter with a thousand packages on a network disk needs some."""

_NAME = re.compile(r"python[\d.]*$")

_PROBE = """
import importlib.metadata, json, platform, sys
packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
print(json.dumps({
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "folders": [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))],
    "packages": dict(sorted((k, v) for k, v in packages.items() if k)),
}))
"""


def interpreter_of(unit: Unit, environment: Mapping[str, str]) -> str | None:
    """The Python that will execute the unit's program, as far as its command line tells."""
    program = _find(unit.command[0], unit.directory, environment) if unit.command else None
    if program is None:
        return None
    if _NAME.search(Path(program).name):
        return program
    words = _first_line(program)
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    if words and _NAME.search(Path(words[0]).name):
        return _find(words[0], None, environment)
    return None


def _find(name: str, directory: str | None, environment: Mapping[str, str]) -> str | None:
    if "/" in name and directory:
        name = str(Path(directory, name))
    return shutil.which(name, path=environment.get("PATH"))


def _first_line(program: str) -> list[str]:
    try:
        if not Path(program).is_file():  # a pipe would keep us waiting
            return []
        with Path(program).open("rb") as file:
            line = file.readline(256)
        return shlex.split(line[2:].decode()) if line.startswith(b"#!") else []
    except (OSError, ValueError):
        return []


class Interpreters:
    """Descriptions of interpreters, kept for as long as nothing was installed or removed."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._known: dict[str, dict[str, object]] = {}

    def recall(self, path: str) -> dict[str, object] | None:
        """What is known and still true, from memory only."""
        known = self._known.get(path)
        return known if known and known["stamp"] == _stamp(path, known["folders"]) else None

    def describe(self, path: str) -> dict[str, object]:
        """The same, from the disk or from the interpreter itself. Blocks."""
        file = self._cache / f"python-{hashlib.sha256(path.encode()).hexdigest()[:16]}.json"
        with contextlib.suppress(OSError, ValueError):
            self._known[path] = json.loads(file.read_bytes())
        if (known := self.recall(path)) is not None:
            return known
        described = self._known[path] = _ask(path)
        if "error" not in described:
            with contextlib.suppress(OSError):
                self._cache.mkdir(parents=True, exist_ok=True)
                partial = file.with_suffix(".tmp")
                partial.write_text(json.dumps(described))
                partial.rename(file)
        return described


def _ask(path: str) -> dict[str, object]:
    """Ask the interpreter; what goes wrong is part of the description."""
    described: dict[str, object] = {"path": path, "folders": []}
    try:
        answer = subprocess.run(
            [path, "-I", "-c", _PROBE],
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        described.update(json.loads(answer.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        described["error"] = f"{path} did not tell its packages: {error}"
    described["stamp"] = _stamp(path, described["folders"])
    return described


def _stamp(path: str, folders: object) -> list[int]:
    """Changes when the interpreter is replaced or a package comes or goes."""
    assert isinstance(folders, list)
    times = []
    for place in (path, *folders):
        try:
            times.append(Path(place).stat().st_mtime_ns)
        except OSError:
            times.append(0)
    return times
