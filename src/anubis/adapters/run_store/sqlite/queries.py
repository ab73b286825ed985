"""Read the named queries from the ``.sql`` files beside this module.

A file is a list of queries, each under a line ``-- name: the_name`` and a comment that says in a
sentence what it is for. Files are read when a store is opened, not on import.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping

_NAME = "-- name: "


@functools.cache
def load(file: str) -> Mapping[str, str]:
    """The queries of one file by name, without comments and the final semicolon."""
    text = pathlib.Path(__file__).with_name(file).read_text(encoding="utf-8")
    _, *sections = text.split(f"\n{_NAME}")
    return dict(_query(section) for section in sections)


def _query(section: str) -> tuple[str, str]:
    name, *lines = section.splitlines()
    body = "\n".join(line for line in lines if not line.startswith("--"))
    return name.strip(), body.strip().removesuffix(";")
