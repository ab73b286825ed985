"""The how-to of the API works as pasted: its blocks run in order against a real service."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/use-the-api.md"
SHOWN = "http://127.0.0.1:8080"

pytestmark = pytest.mark.acceptance


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page in a language."""
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A service on a free port, in a home of its own."""
    given = {name: text for name, text in os.environ.items() if not name.startswith("ANUBIS_")}
    service = subprocess.Popen(
        [str(Path(sys.executable).with_name("anubis")), "serve", "--port", "0"],
        cwd=tmp_path,
        env={**given, "ANUBIS_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert service.stdout is not None
    try:
        said = service.stdout.readline().decode()
        assert said.startswith("listening on http://"), said
        yield said.removeprefix("listening on ").strip()
    finally:
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=60)


def test_every_example_works_as_pasted(address: str, tmp_path: Path) -> None:
    [descriptor] = blocks("toml")
    (tmp_path / "hello.toml").write_text(descriptor)
    scripts = blocks("sh")
    assert sum(script.count("curl ") for script in scripts) >= 20
    assert all(SHOWN in script for script in scripts)
    answers: list[str] = []
    for script in scripts:
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(SHOWN, address)],
            cwd=tmp_path,
            env={**os.environ, "ANUBIS_TOKEN": "anb_none-is-needed-here"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, f"{script}\n{result.stdout}{result.stderr}"
        answers.append(result.stdout)

    said = "".join(answers)
    assert "event: end" in said
    assert "loss=3\nloss=2\nloss=1\n" in said
    assert "304\n" in said
    assert '"status": 422' in said


def test_the_service_is_shown_with_the_address_it_has_by_default() -> None:
    assert f"listening on {SHOWN}\n" in blocks("console")[0]
