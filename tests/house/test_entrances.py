"""The ways into the project: two commands, what CI runs, and what a program imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = ("asyncio", "click", "numpy", "pydantic", "psutil", "rich", "sqlite3", "structlog")


def _recipe(target: str) -> str:
    """The lines below ``target:`` in the Makefile."""
    text = (ROOT / "Makefile").read_text("utf-8")
    match = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, flags=re.MULTILINE)
    assert match, f"the Makefile has no recipe for {target}"
    return match[1]


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")

    assert "make run" in readme
    assert "make test" in readme


def test_ci_runs_the_check_that_includes_the_tests() -> None:
    ci = ROOT / ".ci/run"

    assert os.access(ci, os.X_OK)
    assert re.search(r"^make check$", ci.read_text("utf-8"), flags=re.MULTILINE)
    assert re.search(r"\$\(MAKE\)( --no-print-directory)? test\b", _recipe("check"))


def test_make_run_runs_a_sample_that_exists() -> None:
    [descriptor] = re.findall(r"anubis run (\S+)", _recipe("run"))

    assert (ROOT / descriptor).is_file()


@pytest.mark.parametrize("module", ["anubis.emit", "benchmarkai"])
def test_emit_is_importable_and_costs_a_program_nothing_heavy(module: str) -> None:
    """A measured program imports this: what it drags in disturbs the measurement."""
    code = f"import sys; from {module} import emit; assert callable(emit); print(*sys.modules)"

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert set(HEAVY) & set(result.stdout.split()) == set()


def test_importing_anubis_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import anubis; print(*set(sys.modules) - before)"

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == ["anubis"]
