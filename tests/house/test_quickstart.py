"""The quickstart works: its commands are executed in order, in a home of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anubis.runtime import locking
from anubis.settings import loading

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.acceptance


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home of its own, and the installed command in ``PATH``, as the quickstart asks for."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, "ANUBIS_HOME": str(tmp_path / "home")}
    yield variables
    settings = loading.load(variables)
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(settings.runtime_pid.read_text()), signal.SIGTERM)
    give_up = time.monotonic() + 30
    while locking.is_held(settings.runtime_lock):
        assert time.monotonic() < give_up, "the runtime does not leave"
        time.sleep(0.02)


def _transcript(file: Path, blocks: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Commands of the ``console`` blocks, each with the output the document shows."""
    found: list[tuple[str, list[str]]] = []
    for language, body in blocks:
        for line in body.splitlines() if language == "console" else ():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    assert found, f"{file.name} shows no commands"
    return found


def _shell(command: str, folder: Path, environment: dict[str, str]) -> str:
    result = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, f"$ {command}\n{result.stdout}{result.stderr}"
    return result.stdout


def _undocumented(home: Path) -> list[str]:
    """What lies in the home and is not in the reference of files."""
    reference = (ROOT / "docs/reference/files.md").read_text("utf-8")
    names = {re.sub("-(wal|shm)$", "", file.name) for file in home.iterdir()}
    return sorted(name for name in names if f"`{name}" not in reference)


def test_the_quickstart_works_from_top_to_bottom(
    tmp_path: Path,
    environment: dict[str, str],
    blocks_of: Callable[[Path], list[tuple[str, str]]],
) -> None:
    file = ROOT / "docs/quickstart.md"
    folder = tmp_path

    for command, shown in _transcript(file, blocks_of(file)):
        output = _shell(command, folder, environment)
        if "cd " in command:  # each command gets a shell of its own
            folder = folder / command.rpartition("cd ")[2]
        for line in shown:
            assert line in output.splitlines(), f"$ {command}\n{output}"

    assert _undocumented(tmp_path / "home") == []
    assert "step=20 " in _shell("anubis logs last", folder, environment)
    assert _shell("anubis list --ids", folder, environment).count("\n") == 2


def test_the_descriptor_of_the_readme_runs_and_gives_its_metric(
    tmp_path: Path,
    environment: dict[str, str],
    blocks_of: Callable[[Path], list[tuple[str, str]]],
) -> None:
    [descriptor] = [body for language, body in blocks_of(ROOT / "README.md") if language == "toml"]
    (tmp_path / "sort.toml").write_text(descriptor)

    assert len(descriptor.splitlines()) <= 10
    _shell("anubis run sort.toml", tmp_path, environment)

    samples = _shell("anubis metrics last --series sort --csv", tmp_path, environment)
    assert len(samples.splitlines()) == 1 + 20  # a header, and what -r 20 asks for
