"""Whether the libraries that runs need are there and can do what we ask of them."""

from __future__ import annotations

import importlib
import sqlite3

from anubis.entrypoints.cli.checks.finding import Finding, bad, good

_WANTED = (
    ("patterns", "re2", "google-re2"),
    ("prefilter", "ahocorasick_rs", "ahocorasick-rs"),
    ("compression", "zstandard", "zstandard"),
    ("arrays", "numpy", "numpy"),
)
"""What for, module to import, package to install."""

_OLDEST_SQLITE = (3, 35, 0)  # RETURNING


def importable() -> list[Finding]:
    """One finding per library."""
    return [_importable(*wanted) for wanted in _WANTED]


def _importable(name: str, module: str, package: str) -> Finding:
    try:
        importlib.import_module(module)
    except ImportError as error:
        return bad(name, f"{module}: {error}", f"pip install {package}")
    return good(name, module)


def sqlite() -> Finding:
    """The store needs a recent SQLite with full-text search."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        return bad("sqlite", version, "use a Python built with SQLite 3.35 or newer")
    with sqlite3.connect(":memory:") as database:
        try:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
        except sqlite3.OperationalError:
            return bad("sqlite", f"{version} without FTS5", "use a Python whose SQLite has FTS5")
    database.close()
    return good("sqlite", f"{version} with FTS5")
