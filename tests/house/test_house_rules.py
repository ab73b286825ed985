"""The rules of the style page that a machine can check and no linter does."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "samples")
MOST_LINES = 500
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "base"}


def _python(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def _comments(file: Path) -> Iterator[tuple[int, str]]:
    with file.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def _place(file: Path, line: int | None = None) -> str:
    return f"{file.relative_to(ROOT)}{f':{line}' if line else ''}"


def test_no_file_is_longer_than_the_wall() -> None:
    lengths = {
        _place(file): len(file.read_text("utf-8").splitlines()) for file in _python(*FOLDERS)
    }

    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_module_is_a_drawer() -> None:
    drawers = [_place(file) for file in _python(*FOLDERS) if file.stem.strip("_") in DRAWERS]
    folders = [
        _place(folder)
        for root in FOLDERS
        for folder in (ROOT / root).rglob("*")
        if folder.is_dir() and folder.name in DRAWERS
    ]

    assert drawers + folders == []


def test_every_package_says_what_belongs_to_it() -> None:
    silent = [
        _place(file)
        for file in _python("src", "bench")
        if file.name == "__init__.py" and not ast.get_docstring(ast.parse(file.read_text("utf-8")))
    ]

    assert silent == []


def test_every_folder_with_python_in_src_is_a_package() -> None:
    """A forgotten ``__init__.py`` hides a folder from import-linter and from the wheel."""
    folders = {file.parent for file in _python("src")} - {ROOT / "src"}

    assert [_place(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_nothing_in_src_is_left_for_later() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [
        _place(file, number)
        for file in _python("src")
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if later.search(line)
    ]

    assert found == []


SILENCED = re.compile(r"#\s*type:\s*ignore(?!\[[a-z-]+)|#\s*(?:\w+:\s*)?noqa(?!:\s*[A-Z]+[0-9]*)")


@pytest.mark.parametrize(
    ("comment", "is_vague"),
    [
        ("# type: ignore", True),
        ("# type: ignore[misc]  # reason", False),
        ("# noqa", True),
        ("# noqa: ARG002 - reason", False),
        ("# ruff: noqa", True),
        ("# ruff: noqa: PTH  (reason)", False),
    ],
)
def test_a_vague_silence_is_recognised(comment: str, is_vague: bool) -> None:
    assert bool(SILENCED.search(comment)) is is_vague


def test_every_silenced_rule_is_named() -> None:
    found = [
        _place(file, line)
        for file in _python(*FOLDERS)
        for line, comment in _comments(file)
        if SILENCED.search(comment)
    ]

    assert found == []
