"""Neither column pays for the other: what a command imports depends on whom it asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from anubis.entrypoints.cli import edge
code = edge.main(sys.argv[1:])
print(code, *sys.modules)
"""


def imported(home: Path, *words: str, **variables: str) -> tuple[int, set[str]]:
    """The exit code of a command, and all that it imported."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith("ANUBIS_")}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env={**bare, "ANUBIS_HOME": str(home), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = result.stdout.splitlines()[-1].split()
    return int(code), set(modules)


@pytest.mark.parametrize(
    "words",
    [["list"], ["status"], ["logs"], ["token", "list"], ["endpoint"], ["version", "--json"]],
)
def test_a_command_on_this_machine_imports_no_http(tmp_path: Path, words: list[str]) -> None:
    _, modules = imported(tmp_path, *words)
    assert modules & {"httpx", "httpx_sse", "fastapi", "pydantic", "uvicorn", "numpy"} == set()


def test_a_command_that_asks_a_service_opens_no_store(tmp_path: Path) -> None:
    code, modules = imported(tmp_path, "ping", ANUBIS_ENDPOINT="127.0.0.1:1")
    assert code == 3
    assert "httpx" in modules
    assert modules & {"sqlite3", "re2", "numpy", "fastapi"} == set()
    assert not (tmp_path / "anubis.sqlite").exists()
