"""The rights that the engine needs in its namespace: these, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.kinds import Kind

NEEDED: Final[Mapping[tuple[Kind, str], Sequence[str]]] = {
    (kinds.POD, ""): ("list", "watch", "delete"),
    (kinds.POD, "exec"): ("create", "get"),
    (kinds.JOB, ""): ("create", "patch", "list", "watch", "delete"),
    (kinds.SERVICE, ""): ("create", "patch", "list", "delete"),
    (kinds.SECRET, ""): ("create", "patch", "list", "delete"),
    (kinds.EVENT, ""): ("list",),
}
"""By kind and part of it. Applying an object is ``patch``, and ``create`` if it is not there."""

WITH_MPI: Final[Mapping[tuple[Kind, str], Sequence[str]]] = {
    (kinds.MPI_JOB, ""): ("create", "patch", "list", "watch", "delete"),
}
"""Where the MPI operator is installed."""


async def missing(cluster: Cluster) -> tuple[str, ...]:
    """The rights that we do not have, in words."""
    wanted = dict(NEEDED)
    if await cluster.has_api(kinds.MPI_JOB.group_version, kinds.MPI_JOB.plural):
        wanted |= WITH_MPI
    asked = [(verb, *what) for what, verbs in wanted.items() for verb in verbs]
    answers = await asyncio.gather(*(cluster.can_i(*one) for one in asked))
    return tuple(
        f"{verb} {kind.plural}{f'/{part}' if part else ''}"
        for (verb, kind, part), may in zip(asked, answers, strict=True)
        if not may
    )


def words(missing: Sequence[str], cluster: str) -> str:
    """What to do about rights that we do not have."""
    return (
        f"at {cluster}, we may not {', '.join(missing)}; the Role in deploy/chart has all rights "
        "that the kubernetes engine needs"
    )
