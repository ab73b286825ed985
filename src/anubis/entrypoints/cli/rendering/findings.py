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
_NAME = 14


class FindingShape(TypedDict):
    """A finding as JSON."""

    name: str
    level: str
    found: str
    advice: str


def report(findings: Sequence[Finding]) -> str:
    """One line per finding; advice below it."""
    lines = [line for finding in findings for line in _lines(finding)]
    return "".join(f"{line}\n" for line in [*lines, "", _verdict(findings)])


def shape(finding: Finding) -> FindingShape:
    """The same for programs."""
    return FindingShape(
        name=finding.name, level=finding.level.value, found=finding.found, advice=finding.advice
    )


def _lines(finding: Finding) -> list[str]:
    symbol, colour = _LOOKS[finding.level]
    mark = painted(Cell(text=f"{symbol} {finding.level:<4}", colour=colour))
    lines = [f"{mark}  {finding.name:<{_NAME}}{text.printable(finding.found)}"]
    if finding.advice:
        lines.append(f"        {'':<{_NAME}}{painted(Cell(text='→ ' + finding.advice, dim=True))}")
    return lines


def _verdict(findings: Sequence[Finding]) -> str:
    fails = sum(one.level is Level.FAIL for one in findings)
    warns = sum(one.level is Level.WARN for one in findings)
    if fails:
        return f"{fails} to mend before benchmarks can run, {warns} to think about"
    if warns:
        return f"benchmarks can run; {warns} to think about"
    return "all is well"
