"""The public face of the client is documented whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import anubis.client
from anubis.client import Client

PAGE = (Path(__file__).parents[3] / "docs/reference/client.md").read_text("utf-8")


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def written() -> set[str]:
    """Every word that the page has in back-ticks."""
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))


async def test_every_call_is_documented() -> None:
    async with Client("localhost:1") as client:
        rooms = (client.series, client.schedules, client.datasets, client.tokens, client.scripts)
        parts: list[type] = [Client, *map(type, rooms)]
    assert [name for part in parts for name in public(part) if name not in written()] == []


@pytest.mark.parametrize("name", sorted(set(anubis.client.__all__) - {"Client", "Endpoint"}))
def test_every_public_name_is_documented(name: str) -> None:
    assert getattr(anubis.client, name)
    assert name in written() | set(re.findall(r"\w+", PAGE.split("## Client")[0]))
