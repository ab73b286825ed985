"""Collect everything that is wrong with one document, each thing at its place."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from anubis.domain.problem import Problem, Severity
from anubis.stages.descriptor import wording
from anubis.stages.descriptor.layout import Layout, Path, Position

MAX_PROBLEMS: Final = 200
"""Problems told of one document. Nobody reads more; a hostile file could have 100,000."""


class Report:
    """The problems found so far, in the order of the file."""

    def __init__(
        self, file: str, layout: Layout, homes: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.file = file
        self.layout = layout
        self.homes = homes  #: for every known key, the table where it belongs
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []
        self._untold = 0

    def add(self, problem: Problem) -> None:
        """Keep a problem, unless there are too many of its severity already."""
        kept = self._warnings if problem.severity is Severity.DEPRECATION else self._errors
        if len(kept) < MAX_PROBLEMS:
            kept.append(problem)

    def count(self) -> None:
        """Note that there is one more error, without telling it."""
        self._untold += 1

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted."""
        return len(self._errors) >= MAX_PROBLEMS

    @property
    def has_errors(self) -> bool:
        """Whether the document must be refused."""
        return bool(self._errors)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What makes the document invalid."""
        return tuple(itertools.chain(_in_file_order(self._errors), self._more()))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What should be written differently."""
        return _in_file_order(self._warnings)

    def _more(self) -> tuple[Problem, ...]:
        if not self._untold:
            return ()
        last = _in_file_order(self._errors)[-1]
        found = f"{self._untold:,} more problems"
        return (dataclasses.replace(last, field="", found=found, expected="none", hint=""),)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A value being read: where it is, and whom to tell if it is wrong."""

    path: Path
    report: Report

    def child(self, part: str | int) -> Place:
        """The place of something inside this table or list."""
        return Place(path=(*self.path, part), report=self.report)

    def refuse(self, found: str, expected: str, hint: str = "") -> None:
        """The value is wrong."""
        self._tell(self.report.layout.of_value(self.path), found, expected, hint)

    def refuse_key(self, found: str, expected: str, hint: str = "") -> None:
        """The key should not be there, or not be called so."""
        self._tell(self.report.layout.of_key(self.path), found, expected, hint)

    def refuse_absence(self, key: str, expected: str, hint: str = "") -> None:
        """The table lacks a key: the place is the table's header, the field is the key's."""
        missing = self.child(key)
        missing._tell(self.report.layout.of_value(self.path), "nothing", expected, hint)

    def deprecate(self, found: str, expected: str, hint: str = "") -> None:
        """The value is understood, but there is a newer spelling."""
        at = self.report.layout.of_value(self.path)
        self._tell(at, found, expected, hint, Severity.DEPRECATION)

    def deprecate_key(self, found: str, expected: str, hint: str = "") -> None:
        """The key is understood, but has a newer name."""
        at = self.report.layout.of_key(self.path)
        self._tell(at, found, expected, hint, Severity.DEPRECATION)

    def _tell(  # noqa: PLR0913, RUF100 - the parts of one sentence, private to this class
        self,
        at: Position,
        found: str,
        expected: str,
        hint: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        if severity is Severity.ERROR and self.report.is_full:
            self.report.count()
            return
        self.report.add(
            Problem(
                file=self.report.file,
                line=at.line,
                column=at.column,
                field=wording.dotted(self.path),
                found=found,
                expected=expected,
                hint=hint,
                severity=severity,
            )
        )


def _in_file_order(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
