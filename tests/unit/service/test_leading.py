"""Being the one who acts: how a replica waits, what it knows of the leader, how it loses."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, Self

import pytest

from anubis.bootstrap import embedded, leading
from anubis.bootstrap.leading import Candidate
from anubis.domain.errors import EngineUnavailable, UserError
from anubis.settings.model import Settings


class Lease:
    """A Lease that is held when the test says so."""

    def __init__(self) -> None:
        self.holder = ""
        self.free, self.lost = asyncio.Event(), asyncio.Event()
        self.given_back = False

    async def __aenter__(self) -> Self:
        await self.free.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.given_back = True


def _candidate(lease: Any) -> Candidate:
    return Candidate(lease, "me@10.0.0.1:8080")


async def test_a_candidate_leads_when_it_has_the_lease_and_gives_it_back() -> None:
    lease = Lease()
    candidate = _candidate(lease)
    waiting = asyncio.create_task(candidate.lead())
    await asyncio.sleep(0)
    assert not waiting.done()

    lease.free.set()

    assert await waiting is True
    await candidate.close()
    assert lease.given_back


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_who_is_told_to_leave_while_it_waits_leaves(number: int) -> None:
    lease = Lease()
    candidate = _candidate(lease)
    waiting = asyncio.create_task(candidate.lead())
    await asyncio.sleep(0.01)

    os.kill(os.getpid(), number)

    assert await waiting is False
    await candidate.close()
    assert not lease.given_back


async def test_a_lost_lease_is_an_error_that_says_what_happens_to_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[int] = []
    monkeypatch.setattr(os, "_exit", ends.append)
    monkeypatch.setattr(leading, "LEAVE_WITHIN", 0.01)
    lease = Lease()
    candidate = _candidate(lease)
    lease.lost.set()

    with pytest.raises(EngineUnavailable, match="runs go on"):
        await candidate.keep()

    await asyncio.sleep(0.05)
    assert ends == [3]  # one that does not manage to leave is ended
    await candidate.close()


async def test_who_leaves_in_time_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []
    monkeypatch.setattr(os, "_exit", ends.append)
    monkeypatch.setattr(leading, "LEAVE_WITHIN", 0.01)
    lease = Lease()
    candidate = _candidate(lease)
    lease.lost.set()
    with pytest.raises(EngineUnavailable):
        await candidate.keep()

    await candidate.close()

    await asyncio.sleep(0.05)
    assert ends == []


@pytest.mark.parametrize(
    ("holder", "address"),
    [
        ("", None),
        ("me@10.0.0.1:8080", None),  # ourselves
        ("other@10.0.0.2:8080", ("10.0.0.2", 8080)),
        ("other@[fd00::2]:8080", ("fd00::2", 8080)),
        ("somebody-else", None),
        ("other@10.0.0.2:port", None),
        ("other@[half", None),
    ],
)
async def test_the_holder_of_the_lease_tells_where_it_listens(
    holder: str, address: leading.Address | None
) -> None:
    lease = Lease()
    lease.holder = holder

    assert _candidate(lease).leader() == address


def test_a_replica_is_the_same_after_a_restart_and_another_at_another_port() -> None:
    assert leading.identity_at("0.0.0.0", 80) == leading.identity_at("0.0.0.0", 80)
    assert leading.identity_at("0.0.0.0", 80) != leading.identity_at("0.0.0.0", 81)


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7", "fd00::7"])
def test_who_listens_at_one_address_is_reached_there(host: str) -> None:
    assert leading.address_of(leading.identity_at(host, 80)) == (host, 80)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_who_listens_everywhere_is_reached_at_the_address_of_its_name(host: str) -> None:
    found = leading.address_of(leading.identity_at(host, 80))

    assert found is not None
    assert found[0] not in ("0.0.0.0", "::")


async def test_a_lease_without_a_cluster_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(UserError, match="ANUBIS_LEADER_LEASE"):
        async with leading.opened(Settings(home=tmp_path, leader_lease="anubis"), ("::", 8080)):
            pass


def test_where_a_lease_decides_no_background_runtime_is_started(tmp_path: Path) -> None:
    assert embedded.revival(Settings(home=tmp_path)) is not None
    assert embedded.revival(Settings(home=tmp_path, leader_lease="anubis")) is None
