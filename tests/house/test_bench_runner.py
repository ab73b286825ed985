"""``python -m bench`` runs each bench by itself, and says which came to their end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Our runner over benches of which one fails and one is none."""
    bench = tmp_path / "bench"
    bench.mkdir()
    shutil.copy(ROOT / "bench/__main__.py", bench)
    (bench / "__init__.py").write_text('"""Benches."""\n')
    (bench / "bad.py").write_text('"""It fails."""\ndef main():\n    raise OSError("no luck")\n')
    (bench / "good.py").write_text('"""It works."""\ndef main():\n    print("seven")\n')
    (bench / "support.py").write_text('"""No bench."""\nNUMBER = 7\n')
    return tmp_path


def _bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments], cwd=folder, capture_output=True, text=True
    )


def test_one_failure_does_not_stop_the_rest(folder: Path) -> None:
    result = _bench(folder)

    assert result.returncode == 1
    assert "=== good: It works." in result.stdout
    assert "seven" in result.stdout
    table = [line.split()[:2] for line in result.stdout.splitlines()[-2:]]
    assert table == [["bad", "FAILED"], ["good", "ok"]]


def test_named_benches_run_alone(folder: Path) -> None:
    result = _bench(folder, "good")

    assert result.returncode == 0
    assert "bad" not in result.stdout


def test_an_unknown_name_is_answered_with_the_known_ones(folder: Path) -> None:
    result = _bench(folder, "ugly")

    assert result.returncode != 0
    assert "bad, good" in result.stderr


def test_the_list_shows_only_benches(folder: Path) -> None:
    names = [line.split()[0] for line in _bench(folder, "--list").stdout.splitlines()]

    assert names == ["bad", "good"]
