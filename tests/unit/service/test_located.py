"""What a service makes of a descriptor from a folder that it does not have."""

from __future__ import annotations

import pytest

from anubis.domain.document import Document
from anubis.entrypoints.api.resources import submissions


@pytest.mark.parametrize(
    ("name", "folder", "kept"),
    [
        ("descriptor.toml", "/no/such/hello-world", "hello-world/descriptor.toml"),
        (
            "samples/hello-world/descriptor.toml",
            "/no/such/samples/hello-world",
            "samples/hello-world/descriptor.toml",
        ),
        ("other/descriptor.toml", "/no/such/hello-world", "hello-world/other/descriptor.toml"),
    ],
)
async def test_its_folder_names_it_once(name: str, folder: str, kept: str) -> None:
    document, warnings = await submissions.located(
        Document(name=name, content=b"", directory=folder)
    )
    assert (document.name, document.directory) == (kept, "")
    assert [warning.found for warning in warnings] == [repr(folder)]
