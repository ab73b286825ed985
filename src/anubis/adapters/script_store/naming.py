"""What an archive may be called: by a fingerprint of its bytes.

Ours are named by SHA-256, those of the original client by SHA-1, which can be forged by now: two
archives of one name. So nobody can take the name of an archive that somebody else made with our
client; who uses the original one trusts all others that do.
"""

from __future__ import annotations

import hashlib
import re
from typing import Protocol

from anubis.domain.errors import UserError

_NAME = re.compile(r"(?P<digits>[0-9a-f]{40}|[0-9a-f]{64})\.tar")
_SHA1_NAME = 40 + len(".tar")


class Fingerprint(Protocol):
    """A hash under way."""

    def update(self, part: bytes, /) -> None:
        """Take in some more bytes."""
        ...

    def hexdigest(self) -> str:
        """What the bytes so far come to."""
        ...


def is_legal(name: str) -> bool:
    """Whether this can be the name of an archive. Such a name leads nowhere as a path."""
    return _NAME.fullmatch(name) is not None


def is_safe(name: str) -> bool:
    """Whether this is a name that can belong to one archive only."""
    return is_legal(name) and len(name) != _SHA1_NAME


def demand_legal(name: str) -> None:
    """Raise UserError unless ``name`` can be the name of an archive."""
    if not is_legal(name):
        raise UserError(
            f"script archive: found the name {name[:100]!r}, expected the SHA-256 of its content "
            "in 64 hex digits, or its SHA-1 in 40, and '.tar'"
        )


def missing(name: str) -> UserError:
    """The error for an archive that is not there."""
    return UserError(
        f"script archive {name} is not here: it was never uploaded, or was removed after long "
        "disuse; upload it first"
    )


def fresh() -> Fingerprint:
    """The hash by which we name a new archive."""
    return hashlib.sha256()


def fingerprint(name: str) -> Fingerprint:
    """The hash by which an archive of this legal name is named."""
    if len(name) == _SHA1_NAME:
        return hashlib.sha1(usedforsecurity=False)
    return fresh()


def of(found: Fingerprint) -> str:
    """The name of the archive whose bytes came to this."""
    return f"{found.hexdigest()}.tar"


def demand_content(name: str, found: Fingerprint) -> None:
    """Raise UserError unless ``name`` is the one that content with this fingerprint must have."""
    demand_name(name, of(found))


def demand_name(name: str, right: str) -> None:
    """Raise UserError unless ``name`` is the ``right`` one for its content."""
    if name != right:
        raise UserError(
            f"script archive {name}: found content that must be called {right}; "
            "it was changed or cut off on its way, send it again"
        )
