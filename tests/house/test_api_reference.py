"""The reference of the API names every operation, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from anubis.entrypoints.api import app
from anubis.testing.clock import ManualClock
from anubis.testing.service import a_service

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(HEAD|GET|POST|PUT|DELETE) (/[^`]*)` \|", flags=re.MULTILINE)


def test_the_reference_of_the_api_names_every_operation(tmp_path: Path) -> None:
    told = set(ROW.findall((ROOT / "docs/reference/api.md").read_text("utf-8")))
    document = app.create(a_service(tmp_path, ManualClock())).openapi()
    there = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, operations in document["paths"].items()
        for method in operations
        if path.startswith("/api/v1/")
    }
    assert told == there
