"""Where a service is: the forms in which people write it, and the one in which we keep it."""

from __future__ import annotations

import dataclasses
import ipaddress
import re

from anubis.domain.errors import UserError

_FORM = re.compile(
    r"(?:(?P<scheme>https?)://)?"
    r"(?:(?P<user>[^:@/\s]*):(?P<token>[^@/\s]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)
_USUAL_PORTS = {"http": 80, "https": 443}
_HIGHEST_PORT = 65_535
_EXPECTED = "host:port, http://host:port or https://host"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A service's address. ``str()`` is what is shown and kept; a token is never part of that."""

    host: str  #: a name or an address; IPv6 without brackets
    port: int
    is_encrypted: bool = False
    token: str | None = dataclasses.field(default=None, repr=False, compare=False)
    """What followed ``user:`` before the host, as the original client had it."""

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Read any of the forms. Raises UserError, which does not repeat what may be a token."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise UserError(f"endpoint: found {_hidden(text)!r}, expected {_EXPECTED}")
        scheme, port = match["scheme"], match["port"]
        if scheme is None and port is None:
            raise UserError(f"endpoint: found {match['host']!r} without a port, expected host:port")
        number = int(port or _USUAL_PORTS[scheme])
        if not 1 <= number <= _HIGHEST_PORT:
            raise UserError(f"endpoint: found port {number}, expected 1 to {_HIGHEST_PORT}")
        host = match["host"].strip("[]").lower()
        return cls(
            host=host, port=number, is_encrypted=scheme == "https", token=match["token"] or None
        )

    @property
    def url(self) -> str:
        """The root of its routes."""
        return f"{'https' if self.is_encrypted else 'http'}://{self._place}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, as far as its name tells."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        # Without http://, as the original client keeps it; that one cannot speak https anyway.
        return self.url if self.is_encrypted else self._place

    @property
    def _place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _hidden(text: str) -> str:
    """A wrong endpoint, without what stands before its ``@``."""
    return f"…@{text.rpartition('@')[2]}" if "@" in text else text
