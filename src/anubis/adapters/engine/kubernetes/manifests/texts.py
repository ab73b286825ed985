"""Texts that reach a program as they are.

Kubernetes replaces ``$(NAME)`` in commands, arguments and variables by the variable of that name,
and ``$$`` by ``$``. Plans have been through that already, the same way for all engines.
"""

from __future__ import annotations

import re
from typing import Final

_MEANINGFUL: Final = re.compile(r"\${2,}|\$(?=\()")


def verbatim(text: str) -> str:
    """What Kubernetes must be told so that a program gets this very text."""
    return _MEANINGFUL.sub(lambda found: found[0] * 2, text)


def variable(name: str) -> str:
    """What Kubernetes replaces by a variable of the container that was named before."""
    return f"$({name})"
