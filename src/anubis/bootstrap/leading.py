"""Which replica of a service acts: whoever holds a Lease of the cluster.

The Lease is in the namespace of our own pod. Its holder is named with the address at which it
listens, so that the others can pass on to it what they are asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from anubis.bootstrap import clusters, engines
from anubis.domain.errors import EngineUnavailable, UserError
from anubis.settings.model import Settings

if TYPE_CHECKING:
    from anubis.adapters.engine.kubernetes.lease import Leadership

LEAVE_WITHIN = 3.0
"""Seconds for a leader that lost its Lease. Nobody else has it for five: see ``lease.Terms``."""

Address = tuple[str, int]


class Candidate:
    """A replica that wants to lead."""

    def __init__(self, leadership: Leadership, identity: str) -> None:
        self._leadership = leadership
        self._identity = identity
        self._stack = contextlib.AsyncExitStack()

    def leader(self) -> Address | None:
        """Where the one who leads listens; None: nobody does, or we do."""
        holder = self._leadership.holder
        return None if holder == self._identity else address_of(holder)

    async def lead(self) -> bool:
        """Wait until we lead. False: SIGTERM or SIGINT came first."""
        waiting = asyncio.ensure_future(self._stack.enter_async_context(self._leadership))
        # The first process of a container that handles no SIGTERM does not even end of it.
        with _on_signals(waiting):
            await asyncio.wait([waiting])
        if waiting.cancelled():
            return False
        waiting.result()
        structlog.get_logger("anubis.api").info("leading", identity=self._identity)
        return True

    async def keep(self) -> None:
        """Raises EngineUnavailable when we lead no more. We then have to leave, and soon: what a
        process that is stuck still does, it would do beside another leader.
        """
        await self._leadership.lost.wait()
        loop = asyncio.get_running_loop()
        self._stack.callback(loop.call_later(LEAVE_WITHIN, os._exit, 3).cancel)
        raise EngineUnavailable("the Lease was lost: another replica may lead now; runs go on")

    async def close(self) -> None:
        """Give the Lease back, if we have it."""
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def opened(settings: Settings, at: Address) -> AsyncIterator[Candidate]:
    """A candidate for the Lease of the settings, which listens at this address.

    Raises UserError where no cluster is known.
    """
    # Here and not above: they need the extra ``kubernetes``, which most services do without.
    from anubis.adapters.engine.kubernetes.cluster import Cluster
    from anubis.adapters.engine.kubernetes.lease import Leadership

    if not engines.knows_a_cluster(settings):
        raise UserError(
            "leader_lease (ANUBIS_LEADER_LEASE) needs a cluster, and none is known: unset it, or "
            "set KUBECONFIG to a file that says how one is reached"
        )
    if reason := engines.missing("kubernetes", "kubernetes_asyncio"):
        raise UserError(f"leader_lease (ANUBIS_LEADER_LEASE): {reason}")
    async with contextlib.AsyncExitStack() as stack:
        cluster = Cluster(dataclasses.replace(clusters.access(settings), namespace=""))
        stack.push_async_callback(cluster.close)
        identity = identity_at(*at)
        candidate = Candidate(Leadership(cluster, settings.leader_lease, identity), identity)
        stack.push_async_callback(candidate.close)
        yield candidate


def identity_at(host: str, port: int) -> str:
    """Who we are, and where others reach us. The same after a restart in the same pod, so that the
    Lease of our earlier life, which has surely ended, is ours at once.
    """
    name = socket.gethostname()
    if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        try:  # in a pod, its name is that of its address
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except OSError:  # a machine that does not know its own name
            return f"{name}:{port}"
        host = str(min(found, key=lambda one: one[0] is not socket.AF_INET)[4][0])
    return f"{name}@[{host}]:{port}" if ":" in host else f"{name}@{host}:{port}"


def address_of(identity: str) -> Address | None:
    """Where somebody listens, if that can be told from who it is."""
    try:
        found = urlsplit(f"//{identity.partition('@')[2]}")
        host, port = found.hostname, found.port
    except ValueError:  # somebody else's kind of name
        return None
    return (host, port) if host and port else None


@contextlib.contextmanager
def _on_signals(waiting: asyncio.Future[Leadership]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, waiting.cancel)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
