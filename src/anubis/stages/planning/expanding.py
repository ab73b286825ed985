"""Replace ``$(NAME)`` and ``${NAME}`` in a command, without a shell.

``$(NAME)`` is what Kubernetes replaces, and what the original's descriptors therefore use;
``${NAME}`` is what its documentation showed. ``$$(NAME)`` and ``$${NAME}`` give the text itself.
Anything else with a dollar (``$NAME``, ``$(ls -l)``, ``${NAME:-x}``) is left as it is: it belongs
to the shell of a user who starts one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_REFERENCE: Final = re.compile(
    r"\$(?P<escape>\$)(?=[({])"
    r"|\$\((?P<round>[A-Za-z_][A-Za-z0-9_.-]*)\)"
    r"|\$\{(?P<curly>[A-Za-z_][A-Za-z0-9_]*)\}"
)


def expanded(words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The words with every known variable replaced; unknown ones are left as they are."""

    def replacement(found: re.Match[str]) -> str:
        if found["escape"]:
            return "$"
        return variables.get(found["round"] or found["curly"], found[0])

    return tuple(_REFERENCE.sub(replacement, word) for word in words)


def undefined(words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The references that no variable answers, as written, each once."""
    references = (found for word in words for found in _REFERENCE.finditer(word))
    names = {
        found[0]: None
        for found in references
        if not found["escape"] and (found["round"] or found["curly"]) not in variables
    }
    return tuple(names)
