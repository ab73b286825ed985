"""The lock files pin everything by version and hash, and name no address to download from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements/run.lock", "requirements/extras.lock", "requirements/dev.lock")

PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def _normal(name: str) -> str:
    """Spelt the one way that package names compare by."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _entries(lock: str) -> list[str]:
    """One text per requirement, its continuation lines joined."""
    text = (ROOT / lock).read_text("utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _pins(lock: str) -> dict[str, str]:
    found = {}
    for entry in _entries(lock):
        match = PINNED.match(entry)
        assert match, f"{lock}: not pinned to a version: {entry[:60]}"
        found[_normal(match[1])] = match[2]
    return found


def _wanted(requirements: list[str]) -> set[str]:
    return {_normal(re.split(r"[\s<>=!~;\[]", text, maxsplit=1)[0]) for text in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_a_version_and_a_hash(lock: str) -> None:
    entries = _entries(lock)

    assert entries
    assert [entry[:60] for entry in entries if not PINNED.match(entry)] == []
    assert [entry[:60] for entry in entries if not HASH.search(entry)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8").lower()

    assert "://" not in text
    assert "index-url" not in text
    assert "@" not in text


def test_what_pyproject_asks_for_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    run, extras, dev = map(_pins, LOCKS)
    optional = project["optional-dependencies"]

    assert _wanted(project["dependencies"]) - set(run) == set()
    assert _wanted(optional["dev"]) - set(dev) == set()
    for extra in optional.keys() - {"dev"}:
        assert _wanted(optional[extra]) - set(extras) == set(), extra
        assert _wanted(optional[extra]) - set(dev) == set(), extra


def test_users_and_developers_get_the_same_versions() -> None:
    run, extras, dev = map(_pins, LOCKS)

    for kind in (run, extras):
        assert {name: (kind[name], dev[name]) for name in kind if dev[name] != kind[name]} == {}
