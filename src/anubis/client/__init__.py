"""The Python SDK: ask a service what the command line asks it, with types.

    async with Client("localhost:8080") as client:
        submitted = await client.submit(read_document("descriptor.toml"))
        async for snapshot in client.watch(submitted.run.id):
            print(snapshot.run.state)

Belongs here: speaking HTTP to a service. What is asked for comes back as values of ``domain``; what
goes wrong, as errors of its tree.
"""

from anubis.client.client import Client
from anubis.client.handing_in import Wishes, read_document
from anubis.client.retrying import Policy
from anubis.client.transport import Manner
from anubis.client.values import (
    EngineReport,
    Health,
    Manifested,
    Me,
    Planned,
    Scheduled,
    Submitted,
    Verdict,
)
from anubis.domain.endpoint import Endpoint

__all__ = [
    "Client",
    "Endpoint",
    "EngineReport",
    "Health",
    "Manifested",
    "Manner",
    "Me",
    "Planned",
    "Policy",
    "Scheduled",
    "Submitted",
    "Verdict",
    "Wishes",
    "read_document",
]
