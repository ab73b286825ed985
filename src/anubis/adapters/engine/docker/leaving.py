"""Find what a home has at the daemon, by its labels, and delete it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from anubis.adapters.engine.docker import composing
from anubis.adapters.engine.docker.daemon import Daemon
from anubis.domain.run import RunId


class Kind(enum.StrEnum):
    """What can be left, in the order in which it can be deleted."""

    CONTAINER = "container"
    NETWORK = "network"
    VOLUME = "volume"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """One thing at the daemon that is ours."""

    kind: Kind
    id: str
    run_id: RunId
    is_running: bool = False


async def find(daemon: Daemon, home: str, run_id: RunId | None = None) -> Sequence[Left]:
    """Everything of a home, or of one of its runs."""
    labels = [f"{composing.HOME}={home}"]
    if run_id is not None:
        labels.append(f"{composing.RUN}={run_id}")
    containers = [
        Left(
            kind=Kind.CONTAINER,
            id=one.id,
            run_id=RunId(one.labels.get(composing.RUN, "")),
            is_running=one.is_running,
        )
        for one in await daemon.containers(labels)
    ]
    others = [
        Left(kind=kind, id=one.id, run_id=RunId(one.labels.get(composing.RUN, "")))
        for kind, found in (
            (Kind.NETWORK, await daemon.networks(labels)),
            (Kind.VOLUME, await daemon.volumes(labels)),
        )
        for one in found
    ]
    return [*containers, *others]


async def delete(daemon: Daemon, left: Sequence[Left]) -> None:
    """Delete these; what is gone is as good as deleted."""
    for one in left:
        if one.kind is Kind.CONTAINER:
            await daemon.delete_container(one.id, force=True)
        elif one.kind is Kind.NETWORK:
            await daemon.delete_network(one.id)
        else:
            await daemon.delete_volume(one.id)
