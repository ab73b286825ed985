"""The doctor's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from anubis.entrypoints.cli.checks.finding import Finding, Level
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, painted

_LOOKS: Mapping[Level, tuple[str, str]] = {
    Level.OK: ("✔", "green"),
    Level.WARN: ("!", "yellow"),
    Level.FAIL: ("✘", "red"),
}
_MARK, _NAME = 8, 14
_NARROW = 60
"""Cells of a terminal where lines that go on may not keep to their column."""


class FindingShape(TypedDict):
    """A finding as JSON."""

    name: str
    level: str
    found: str
    advice: str


def report(findings: Sequence[Finding], width: int | None = None) -> str:
    """A finding a line, advice below it; long ones go on in a line of their own."""
    lines = [line for finding in findings for line in _lines(finding, width)]
    verdict = text.hanging(_verdict(findings), width)
    return "".join(f"{line}\n" for line in [*lines, "", *verdict])


def shape(finding: Finding) -> FindingShape:
    """The same for programs."""
    return FindingShape(
        name=finding.name, level=finding.level.value, found=finding.found, advice=finding.advice
    )


def _lines(finding: Finding, width: int | None) -> list[str]:
    symbol, colour = _LOOKS[finding.level]
    mark = painted(Cell(text=f"{symbol} {finding.level:<4}", colour=colour))
    indent = " " * (_MARK if width is not None and width < _NARROW else _MARK + _NAME)
    found = text.printable(finding.found)
    lines = text.hanging(found, width, after=f"{mark}  {finding.name:<{_NAME}}", indent=indent)
    if finding.advice:
        advice = text.printable(finding.advice)
        parts = text.hanging(advice, width, after=f"{indent}→ ", indent=f"{indent}  ")
        lines += [painted(Cell(text=part, dim=True)) for part in parts]
    return lines


def _verdict(findings: Sequence[Finding]) -> str:
    fails = sum(one.level is Level.FAIL for one in findings)
    warns = sum(one.level is Level.WARN for one in findings)
    if fails:
        return f"{fails} to mend before benchmarks can run, {warns} to think about"
    if warns:
        return f"benchmarks can run; {warns} to think about"
    return "all is well"
