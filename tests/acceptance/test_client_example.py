"""The example in the reference of the Python client does what it shows, against a real service."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Home
from .serving import BARE, PATIENCE, Service

pytestmark = pytest.mark.acceptance

PAGE = Path(__file__).parents[2] / "docs/reference/client.md"


def test_the_example_submits_watches_and_shows_what_was_measured(
    tmp_path: Path, service: Service
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    home = Home(tmp_path)
    home.descriptor("echo loss=0.5; echo loss=0.25", "descriptor")
    code = example.replace("localhost:8080", service.endpoint)
    assert code != example
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=BARE, capture_output=True, timeout=PATIENCE
    )
    assert result.returncode == 0, result.stderr.decode()
    lines = result.stdout.decode().splitlines()
    assert "SUCCEEDED" in lines
    assert "loss 2 0.25" in lines
