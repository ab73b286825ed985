"""One thing that is wrong with a user's document, in the form people can act on."""

from __future__ import annotations

import dataclasses
import enum


class Severity(enum.StrEnum):
    """How bad a problem is."""

    ERROR = "error"  #: the document is refused
    WARNING = "warning"  #: accepted, but perhaps not what its author expects
    DEPRECATION = "deprecation"  #: accepted; a newer spelling exists


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Where, what was found, what was expected. ``str()`` gives the line a user reads."""

    file: str
    line: int  #: 1-based; 1 when the whole document is meant
    column: int  #: 1-based, in characters
    field: str  #: dotted, list items as ``data.sources[0].src``; empty for syntax errors
    found: str
    expected: str
    hint: str = ""  #: for instance "did you mean 'docker_image'?"
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        subject = f"{self.field}: " if self.field else ""
        hint = f" ({self.hint})" if self.hint else ""
        return (
            f"{place}: {self.severity}: {subject}found {self.found}, expected {self.expected}{hint}"
        )
