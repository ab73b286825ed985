"""Addresses and certificates, before anything else is touched."""

from __future__ import annotations

import os
import socket

import pytest

from anubis.domain.errors import UserError
from anubis.entrypoints.api import listening


@pytest.mark.parametrize(
    ("host", "address", "is_loopback"),
    [
        ("127.0.0.1", "http://127.0.0.1:", True),
        ("localhost", "http://127.0.0.1:", True),
        ("0.0.0.0", "http://0.0.0.0:", False),
        ("::1", "http://[::1]:", True),
        ("::", "http://[::]:", False),
    ],
)
def test_the_address_decides_whether_others_reach_us(
    host: str, address: str, is_loopback: bool
) -> None:
    if ":" in host and not _has_ipv6():
        pytest.skip("no IPv6 here")
    listener = listening.bind(host, 0)
    with listener.socket:
        assert listener.is_loopback is is_loopback
        assert listener.address(is_secure=False).startswith(address)
        assert listener.address(is_secure=True).startswith("https://")


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["no.such.host.invalid", "256.1.1.1", "a" * 300, "\x00"])
def test_a_host_that_is_none_is_explained(host: str) -> None:
    with pytest.raises(UserError, match="host"):
        listening.bind(host, 0)


def test_what_to_choose_instead_is_the_address_or_the_port() -> None:
    with pytest.raises(UserError, match="choose another with --host"):
        listening.bind("192.0.2.1", 0)  # an address for documents: nobody has it
    taken = listening.bind("127.0.0.1", 0).socket
    with taken, pytest.raises(UserError, match="choose another with --port"):
        listening.bind("127.0.0.1", taken.getsockname()[1])


def test_sockets_meant_for_another_process_are_left_alone() -> None:
    given = {"LISTEN_PID": str(os.getpid() + 1), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x"}
    assert listening.inherited(given) is None
    assert given == {}
