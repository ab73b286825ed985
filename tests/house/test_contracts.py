"""The import contracts of pyproject.toml fail on a violation: each is broken here on purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROOMS = "The rooms: imports only point down"
STAGES = "No stage imports another"
ADAPTERS = "No adapter of one port imports an adapter of another"
DOMAIN = "The domain does no I/O and knows no client library"

# Contract, the file that goes wrong, and the import it must not have. The files are new ones, so
# that the proof does not depend on what the rooms hold.
VIOLATIONS = [
    (ROOMS, "domain/wrong.py", "anubis.ports"),
    (ROOMS, "ports/wrong.py", "anubis.adapters.clock"),
    (ROOMS, "stages/submission/wrong.py", "anubis.adapters.clock"),
    (ROOMS, "adapters/clock/wrong.py", "anubis.stages.submission"),
    (ROOMS, "runtime/wrong.py", "anubis.settings"),
    (ROOMS, "settings/wrong.py", "anubis.bootstrap"),
    (ROOMS, "bootstrap/wrong.py", "anubis.entrypoints"),
    (STAGES, "stages/submission/wrong.py", "anubis.stages.execution"),
    (ADAPTERS, "adapters/clock/wrong.py", "anubis.adapters.event_bus.in_process"),
    (DOMAIN, "domain/wrong.py", "sqlite3"),
    (DOMAIN, "ports/wrong.py", "os"),
]


def _declared() -> list[str]:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return [contract["name"] for contract in tables["tool"]["importlinter"]["contracts"]]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and their configuration."""
    copy = tmp_path_factory.mktemp("pristine")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The command that ``make check`` calls, on the copy instead of the real sources."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(
        [*command, "--config", "pyproject.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def _broken(report: str) -> set[str]:
    return {name for name in _declared() if f"{name} BROKEN" in report}


def test_every_contract_is_kept_by_the_sources_as_they_are(pristine: Path) -> None:
    result = _lint(pristine)

    assert result.returncode == 0, result.stdout + result.stderr
    assert all(f"{name} KEPT" in result.stdout for name in _declared())


def test_every_contract_has_a_violation_in_this_file() -> None:
    assert {contract for contract, _, _ in VIOLATIONS} == set(_declared())


@pytest.mark.parametrize("contract", _declared())
def test_a_violation_fails_the_build_and_names_the_contract(
    contract: str, pristine: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(pristine, copy)
    wrong = [(file, target) for name, file, target in VIOLATIONS if name == contract]
    for file, target in wrong:
        (copy / "src/anubis" / file).write_text(f'"""Wrong on purpose."""\n\nimport {target}\n')

    result = _lint(copy)

    assert result.returncode != 0
    assert contract in _broken(result.stdout), result.stdout + result.stderr
    for file, target in wrong:
        module = "anubis." + file.removesuffix(".py").replace("/", ".")
        assert f"{module} -> {target}" in result.stdout, f"{module} importing {target} passed"
