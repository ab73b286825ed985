"""What is found wrong after a descriptor was read is told with its place in the file."""

from __future__ import annotations

import pytest

from anubis.domain.document import Document
from anubis.stages.descriptor.placing import placed

TEXT = """\
spec_version = "0.1.0"
[info]
description = "d"
[env]
privileged = true
[[data.sources]]
src = "a"
  path = "b"
"""
DOCUMENT = Document(name="f.toml", directory="", content=TEXT.encode())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("env.privileged: no", "f.toml:5:14: env.privileged: no"),
        ("data.sources[0].path: no", "f.toml:8:10: data.sources[0].path: no"),
        ("env.privileged, env.vars: no", "f.toml:5:14: env.privileged, env.vars: no"),
        # Not written: where the table is that would have it, or the file.
        ("env.docker_image: no", "f.toml:4:1: env.docker_image: no"),
        ("hardware.cpus: no", "f.toml: hardware.cpus: no"),
        ("Docker is away: no", "Docker is away: no"),
        ("anubis: no", "anubis: no"),
        ("env.privileged: no\nmore", "f.toml:5:14: env.privileged: no\nmore"),
    ],
)
def test_a_line_that_begins_with_a_field_gets_its_place(message: str, expected: str) -> None:
    assert placed(message, DOCUMENT) == expected
