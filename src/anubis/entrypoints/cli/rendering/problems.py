"""What is wrong with descriptors, file by file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypedDict

from anubis.domain.problem import Problem, Severity
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, painted
from anubis.stages.presentation import shapes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What was found in one file. A valid one may have deprecations."""

    file: str
    is_valid: bool
    problems: Sequence[Problem]


class VerdictShape(TypedDict):
    """A verdict as JSON."""

    file: str
    valid: bool
    problems: list[shapes.ProblemShape]


def page(verdict: Verdict) -> str:
    """One line per problem, then the verdict."""
    lines = [text.printable(str(problem)) for problem in verdict.problems]
    return "".join(f"{_coloured(line)}\n" for line in [*lines, _summary(verdict)])


def shape(verdict: Verdict) -> VerdictShape:
    """The same for programs."""
    return VerdictShape(
        file=verdict.file,
        valid=verdict.is_valid,
        problems=[shapes.problem_shape(problem) for problem in verdict.problems],
    )


def _summary(verdict: Verdict) -> str:
    count, name = len(verdict.problems), text.printable(verdict.file)
    if verdict.is_valid:
        notes = f", {_counted(count, 'old spelling')}" if count else ""
        return f"{name}: valid{notes}"
    errors = sum(problem.severity is Severity.ERROR for problem in verdict.problems)
    return f"{name}: not valid, {_counted(errors, 'error')}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _coloured(line: str) -> str:
    for mark, colour in _COLOURS:
        before, found, after = line.partition(mark)
        if found:
            return f"{before}{painted(Cell(text=found, colour=colour, bold=True))}{after}"
    return line


_COLOURS = (
    (": error: ", "red"),
    (": warning: ", "yellow"),
    (": deprecation: ", "yellow"),
    (": not valid", "red"),
    (": valid", "green"),
)
