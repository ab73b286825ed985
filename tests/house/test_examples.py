"""Every piece of a descriptor that our documents show is one that we accept, without a warning."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from anubis.domain.document import Document
from anubis.stages.descriptor import parsing

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(file for file in (ROOT / "docs").rglob("*.md") if file.name != "settings.md"),
]

WHOLE = textwrap.dedent(
    """
    spec_version = "0.1.0"
    info.description = "The piece that a document shows, completed"
    """
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_descriptor_shown_is_valid(
    document: Path, blocks_of: Callable[[Path], list[tuple[str, str]]]
) -> None:
    for language, body in blocks_of(document):
        if language != "toml":
            continue
        content = body if "spec_version" in tomllib.loads(body) else WHOLE + body
        name = str(document.relative_to(ROOT))

        parsed = parsing.parse(Document(name=name, directory="", content=content.encode()))

        assert parsed.warnings == (), content
