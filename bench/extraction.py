"""Output to metrics, 10 patterns: MB/s beside ripgrep, plain re and RE2 without the prefilter.

CPU time of one core, the best of some interleaved rounds. All of ours and the Python peers find
every match and turn it into a number; ``rg -o`` only prints what matched, ``rg -c`` only counts
lines. "whole collector" also cuts lines, keeps statistics and hands everything to stores that
drop it. Goals: 400 MB/s and within five times of ripgrep at 2 %; 200,000 matches/s at 50 %.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import re2

from anubis.domain.metric import MetricDefinition, MetricKey
from anubis.domain.observation import OutputChunk, Stream
from anubis.ports.series_store import Column
from anubis.stages.collection.collecting import Collector
from anubis.stages.collection.matching import Matcher
from bench import output_text

CHUNK = 128 * 1024  # what suits the peers best
ENGINE_CHUNK = 1 << 20  # how the process engine hands output over
DEFINITIONS = [
    MetricDefinition(name=name, units="", pattern=pattern)
    for name, pattern in output_text.PATTERNS.items()
]
Measured = Callable[[bytes], int]


class NoLog:
    """Drops the output."""

    async def append(self, unit: str, stream: Stream, at: datetime, text: bytes) -> None:
        """Drop it."""

    async def flush(self) -> None:
        """Nothing to do."""

    async def seal(self) -> None:
        """Nothing to do."""


class NoSeries:
    """Drops the samples."""

    async def append(self, columns: Mapping[MetricKey, Column]) -> None:
        """Drop them."""

    async def values(self, key: MetricKey) -> Sequence[float]:
        """Never asked for: the collector is not finished."""
        raise NotImplementedError(key)

    async def seal(self) -> None:
        """Nothing to do."""


def chunks(text: bytes) -> list[bytes]:
    """Newline-aligned parts, as our matcher cuts them."""
    parts, start = [], 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + CHUNK) + 1
        parts.append(text[start:end])
        start = end
    return parts


def matcher(text: bytes) -> int:
    find = Matcher(DEFINITIONS).find
    return sum(len(found.values) for found in find(text))


def collector(text: bytes) -> int:
    async def collect() -> int:
        collecting = Collector(DEFINITIONS, NoLog(), NoSeries(), json_lines_on_stdout=True)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for start in range(0, len(text), ENGINE_CHUNK):
            data = text[start : start + ENGINE_CHUNK]
            await collecting.feed(OutputChunk(unit="u", at=at, stream=Stream.STDOUT, data=data))
        return collecting.revision

    return asyncio.run(collect())


def re2_each(text: bytes) -> int:
    options = re2.Options()
    options.never_nl = True
    patterns = [re2.compile(f"(?m){item.pattern}", options) for item in DEFINITIONS]
    count = 0
    for chunk in chunks(text):
        for pattern in patterns:
            count += len([float(match.group(1)) for match in pattern.finditer(chunk)])
    return count


def re2_alternation(text: bytes) -> int:
    options = re2.Options()
    options.never_nl = True
    together = "|".join(f"(?:{item.pattern})" for item in DEFINITIONS)
    pattern = re2.compile(f"(?m){together}", options)
    return sum(
        len([float(match.group(match.lastindex)) for match in pattern.finditer(chunk)])
        for chunk in chunks(text)
    )


def plain_re(text: bytes) -> int:
    patterns = [re.compile(item.pattern.encode(), re.MULTILINE) for item in DEFINITIONS]
    count = 0
    for chunk in chunks(text):
        for pattern in patterns:
            count += len([float(match.group(1)) for match in pattern.finditer(chunk)])
    return count


OPTIONS: Mapping[str, Measured] = {
    "anubis: prefilter, then RE2": matcher,
    "anubis: whole collector": collector,
    "RE2, each pattern": re2_each,
    "RE2, one alternation": re2_alternation,
    "plain re, each pattern": plain_re,
}


def timed(work: Measured, text: bytes) -> tuple[float, int]:
    """CPU seconds and matches."""
    started = time.process_time()
    count = work(text)
    return time.process_time() - started, count


def ripgrep(path: Path, flag: str) -> float:
    """CPU seconds of ripgrep over the file."""
    arguments = [part for item in DEFINITIONS for part in ("-e", item.pattern)]
    command = ["rg", flag, "--no-line-number", "--no-config", "-j1", *arguments, str(path)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def measure(text: bytes, rounds: int) -> tuple[dict[str, float], int]:
    """The best CPU time of every option, and the number of matches."""
    best: dict[str, float] = {}
    counts: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output.txt"
        path.write_bytes(text)
        for _ in range(rounds):
            for name, work in OPTIONS.items():
                seconds, count = timed(work, text)
                best[name] = min(best.get(name, seconds), seconds)
                counts.add(count)
            if shutil.which("rg"):
                for flag in ("-o", "-c"):
                    seconds = ripgrep(path, flag)
                    best[f"rg {flag}"] = min(best.get(f"rg {flag}", seconds), seconds)
    assert len(counts) == 1, f"the options disagree: {counts}"
    return best, counts.pop()


def report(matching: float, text: bytes, rounds: int) -> None:
    best, count = measure(text, rounds)
    reference = best.get("rg -o")
    print(f"\n{matching:.0%} of lines match: {len(text) / 1e6:.0f} MB, {count:,} matches")
    print(f"{'':30} {'MB/s':>7} {'matches/s':>11} {'÷ rg -o':>8}")
    for name, seconds in best.items():
        ratio = f"{seconds / reference:8.1f}" if reference else "       –"
        rate = "" if name == "rg -c" else f"{count / seconds:,.0f}"
        print(f"{name:30} {len(text) / seconds / 1e6:7.0f} {rate:>11} {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if shutil.which("rg") is None:
        print("skipped: ripgrep, which is not installed (package ripgrep)")
    for matching in (0.02, 0.5):
        report(matching, output_text.text(given.megabytes, matching), given.rounds)


if __name__ == "__main__":
    main()
