"""Read the named queries from the ``.sql`` files of the stores.

A file is a list of queries, each under a line ``-- name: the_name`` and a comment that says in a
sentence what it is for. Files are read when a query is first needed, not on import.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping

_NAME = "-- name: "


class Queries:
    """The queries of one file by name, without comments and the final semicolon."""

    def __init__(self, module: str, file: str) -> None:
        """``file`` lies beside ``module``, which gives its ``__file__``."""
        self._path = pathlib.Path(module).with_name(file)

    def __getitem__(self, name: str) -> str:
        return self.all[name]

    @functools.cached_property
    def all(self) -> Mapping[str, str]:
        """Every query of the file."""
        return load(self._path)


def load(path: pathlib.Path) -> Mapping[str, str]:
    """The queries of a file."""
    _, *sections = path.read_text(encoding="utf-8").split(f"\n{_NAME}")
    return dict(_query(section) for section in sections)


def _query(section: str) -> tuple[str, str]:
    name, *lines = section.splitlines()
    body = "\n".join(line for line in lines if not line.startswith("--"))
    return name.strip(), body.strip().removesuffix(";")
