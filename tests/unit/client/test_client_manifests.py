"""What a service says Kubernetes would get is passed on as it is."""

from __future__ import annotations

import httpx
import pytest

from anubis.domain.document import Document
from anubis.domain.errors import UnexpectedAnswer

from .given import Service

DOCUMENT = Document(name="d.toml", directory="", content=b"")
JOB = {"kind": "Job", "spec": {"completions": 1}}


async def test_objects_arrive_as_they_were_sent() -> None:
    answer = {"objects": [JOB], "notes": ["no cluster was asked"], "warnings": []}
    service = Service(httpx.Response(200, json=answer))
    async with service.client() as client:
        found = await client.manifest(DOCUMENT, "team")
    assert (found.objects, found.notes) == ((JOB,), ("no cluster was asked",))
    asked = service.requests[0].url
    assert asked.path == "/api/v1/descriptors/manifest"
    assert asked.params["namespace"] == "team"


async def test_an_object_that_is_none_is_named() -> None:
    answer = {"objects": ["Job"], "notes": [], "warnings": []}
    async with Service(httpx.Response(200, json=answer)).client() as client:
        with pytest.raises(UnexpectedAnswer, match="objects"):
            await client.manifest(DOCUMENT)
