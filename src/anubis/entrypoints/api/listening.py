"""Where we listen: one socket, bound before anything else is touched.

A supervisor such as systemd may bind it for us and keep it open while we are restarted: then
clients wait for a moment instead of being refused.
"""

from __future__ import annotations

import dataclasses
import errno
import ipaddress
import os
import socket
from collections.abc import MutableMapping

from anubis.domain.errors import UserError

BACKLOG = 2048
"""Connections that may wait while we are busy, or while we are being started."""

_FIRST_INHERITED = 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Listener:
    """A bound socket. Connections wait in it until somebody serves them."""

    socket: socket.socket

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it. The address decides, whatever name was given."""
        return ipaddress.ip_address(self.bound[0].partition("%")[0]).is_loopback

    def address(self, *, is_secure: bool) -> str:
        """How clients write it."""
        host, port = self.bound
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if is_secure else 'http'}://{shown}:{port}"

    @property
    def bound(self) -> tuple[str, int]:
        """Host and port; the operating system chose it, where we did not."""
        host, port = self.socket.getsockname()[:2]
        return str(host), int(port)


def inherited(environ: MutableMapping[str, str]) -> Listener | None:
    """The socket that systemd handed to us, if it did (``sd_listen_fds(3)``).

    Raises UserError if it is none that we can use.
    """
    meant_for, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "0")
    environ.pop("LISTEN_FDNAMES", None)
    if meant_for != str(os.getpid()) or count == "0":
        return None
    os.set_inheritable(_FIRST_INHERITED, False)  # no program may hold it
    found = socket.socket(fileno=_FIRST_INHERITED)
    if found.family not in (socket.AF_INET, socket.AF_INET6) or count != "1":
        raise UserError("the socket unit: expected one TCP socket (ListenStream=HOST:PORT)")
    found.setblocking(False)
    return Listener(socket=found)


def bind(host: str, port: int) -> Listener:
    """Listen at the first address that the host has. Raises UserError with what is in the way."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UserError(f"host: found {host!r}, expected a name or an address of here") from error
    # IPv4 first: what most clients try first when they are given a name.
    family, _, _, _, address = min(found, key=lambda one: one[0] is not socket.AF_INET)
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        option = "--host" if error.errno == errno.EADDRNOTAVAIL else "--port"
        raise UserError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another with {option}"
        ) from error
    bound.setblocking(False)
    return Listener(socket=bound)
