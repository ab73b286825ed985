"""What an archive may be called: by the SHA-1 of its bytes, as the original client names it."""

from __future__ import annotations

import re

from anubis.domain.errors import UserError

_NAME = re.compile(r"(?P<sha1>[0-9a-f]{40})\.tar")


def is_legal(name: str) -> bool:
    """Whether this can be the name of an archive. Such a name leads nowhere as a path."""
    return _NAME.fullmatch(name) is not None


def demand_legal(name: str) -> None:
    """Raise UserError unless ``name`` can be the name of an archive."""
    if not is_legal(name):
        raise UserError(
            f"script archive: found the name {name[:100]!r}, "
            "expected the SHA-1 of its content in 40 hex digits and '.tar'"
        )


def missing(name: str) -> UserError:
    """The error for an archive that is not there."""
    return UserError(
        f"script archive {name} is not here: it was never uploaded, or was removed after long "
        "disuse; upload it first"
    )


def demand_content(name: str, sha1: str) -> None:
    """Raise UserError unless ``name`` is the one that content with this SHA-1 must have."""
    if name != f"{sha1}.tar":
        raise UserError(
            f"script archive {name}: found content whose SHA-1 is {sha1}; "
            "it was changed or cut off on its way, send it again"
        )
