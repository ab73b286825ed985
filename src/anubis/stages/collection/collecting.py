"""Collect one run: feed it what the engine observes, flush now and then, finish once.

Relies on being fed in order, by one task. Memory stays bounded whatever the program does:
output is passed on in blocks, samples go to the series store in batches, and the number of
metrics is limited.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from anubis.domain.metric import MetricDefinition, MetricKey, MetricSource, Summary
from anubis.domain.observation import (
    EmittedChunk,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitStarted,
)
from anubis.ports.log_store import LogWriter
from anubis.ports.series_store import SeriesWriter
from anubis.stages.collection import emitted, ranks, resources
from anubis.stages.collection.assembling import LineAssembler
from anubis.stages.collection.ending import LastLines
from anubis.stages.collection.findings import Findings
from anubis.stages.collection.matching import Matcher
from anubis.stages.collection.samples import Samples, exact_summary

INLINE_BYTES = 160 * 1024
"""Blocks up to this size are done in place: half a millisecond, unless every line matches. The
switch to a thread and back costs as much."""

MOST_PENDING = 65_536
"""Samples held back at most: one MiB."""

MOST_SORTED = 10_000_000
"""Values of one series sorted for exact percentiles: 80 MB. Beyond, a regular sample serves."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """What a run left behind, once everything is stored."""

    summaries: tuple[Summary, ...]  #: ordered by unit, source and name
    warnings: tuple[str, ...]  #: what could not be used, in sentences
    lines: int
    output_bytes: int
    last_lines: Mapping[str, tuple[str, ...]]  #: by unit, oldest first, both streams merged


class Collector:
    """Turns the observations of one run into its log, its series and their statistics."""

    def __init__(
        self,
        metrics: Sequence[MetricDefinition],
        log: LogWriter,
        series: SeriesWriter,
        *,
        json_lines_on_stdout: bool,
        tagged: Collection[str] = (),
    ) -> None:
        """Raises UserError if a pattern is invalid. Units that are ``tagged`` speak for ranks."""
        self._metrics = tuple(metrics)
        self._everywhere = Matcher(self._metrics)
        self._matchers: dict[str, Matcher] = {}
        self._log = log
        self._writer = series
        self._reads_stdout = json_lines_on_stdout
        self._tagged = frozenset(tagged)
        self._units = {definition.name: definition.units for definition in self._metrics}
        self._output: dict[tuple[str, Stream], LineAssembler] = {}
        self._ranks: dict[tuple[str, Stream], ranks.Ranks] = {}
        self._emitted: dict[str, LineAssembler] = {}
        self._meters: dict[str, resources.CpuMeter] = {}
        self._samples = Samples()
        self._findings = Findings()
        self._last_lines = LastLines()
        self._last_at = datetime.fromtimestamp(0, UTC)
        self._lines = 0
        self.output_bytes = 0  #: taken so far, unfinished lines excepted
        # A flush from a timer must not come between the blocks of one observation.
        self._turn = asyncio.Lock()

    @property
    def revision(self) -> int:
        """Grows with every sample: unchanged means ``live()`` would say the same again."""
        return self._samples.count

    async def feed(self, observation: Observation) -> None:
        """Take the next observation."""
        async with self._turn:
            self._last_at = observation.at
            await self._take(observation)
            if self._samples.pending >= MOST_PENDING:
                await self._append_samples()

    async def flush(self) -> None:
        """Make all that was fed visible to readers, unfinished lines excepted."""
        async with self._turn:
            await self._append_samples()
            await self._log.flush()

    def live(self) -> Sequence[Summary]:
        """The statistics so far; percentiles of long series are close, the rest is exact."""
        return self._samples.summaries()

    async def finish(self) -> Collected:
        """Take what is left, seal log and series, and sum up. Called once."""
        async with self._turn:
            await self._take_rests()
            self._note_metrics_without_values()
            await self._append_samples()
            await self._log.seal()
            await self._writer.seal()
            summaries = await self._summaries()
        return Collected(
            summaries=summaries,
            warnings=self._findings.warnings(),
            lines=self._lines,
            output_bytes=self.output_bytes,
            last_lines=self._last_lines.decoded(),
        )

    async def _take_rests(self) -> None:
        """Take what the program never ended with a newline."""
        for (unit, stream), assembler in self._output.items():
            if rest := assembler.finish():
                await self._take_lines(unit, stream, rest)
        for (launcher, _), ranks_of_it in self._ranks.items():
            for speaker, kind, rest in ranks_of_it.finish():
                await self._take_block(speaker, kind, rest, said_by=launcher)
        for unit, assembler in self._emitted.items():
            self._read_emitted(unit, assembler.finish())

    def _note_metrics_without_values(self) -> None:
        seen = self._samples.names()
        for metric in self._metrics if self._lines else ():
            if metric.name not in seen and not self._findings.has_matches(metric.name):
                self._findings.pattern_found_nothing(metric.name, metric.pattern)

    async def _take(self, observation: Observation) -> None:
        match observation:
            case OutputChunk():
                await self._feed_output(observation)
            case EmittedChunk():
                await self._feed_emitted(observation)
            case ResourceReading():
                self._read_resources(observation)
            case UnitStarted():
                self._meter(observation.unit).started(observation.at)
            case UnitEnded():
                self._note_totals(observation)

    async def _feed_emitted(self, chunk: EmittedChunk) -> None:
        assembler = self._emitted.setdefault(chunk.unit, LineAssembler())
        for block in assembler.add(chunk.data):
            await _run(len(block), functools.partial(self._read_emitted, chunk.unit, block))

    async def _feed_output(self, chunk: OutputChunk) -> None:
        assembler = self._output.setdefault((chunk.unit, chunk.stream), LineAssembler())
        for block in assembler.add(chunk.data):
            await self._take_lines(chunk.unit, chunk.stream, block)

    async def _take_lines(self, unit: str, stream: Stream, block: bytes) -> None:
        if unit not in self._tagged:
            await self._take_block(unit, stream, block)
            return
        self._last_lines.add(unit, stream, block)  # why it failed is in what its ranks said
        told_apart = self._ranks.setdefault((unit, stream), ranks.Ranks(unit, stream))
        for speaker, kind, lines in told_apart.add(block):
            await self._take_block(speaker, kind, lines, said_by=unit)

    async def _take_block(
        self, unit: str, stream: Stream, block: bytes, *, said_by: str = ""
    ) -> None:
        await self._log.append(unit, stream, self._last_at, block)
        if unit != said_by:
            self._last_lines.add(unit, stream, block)
        await _run(len(block), functools.partial(self._examine, unit, stream, block))
        self._lines += block.count(b"\n") + (not block.endswith(b"\n"))
        self.output_bytes += len(block)

    def _examine(self, unit: str, stream: Stream, block: bytes) -> None:
        """Find samples in a block. May run in a thread, one at a time."""
        for found in self._matcher(unit).find(block):
            name = found.definition.name
            self._add(unit, name, MetricSource.PATTERN, found.definition.units, found.values)
            if found.rejected:
                line = self._lines + 1 + found.rejected.line
                self._findings.match_is_no_number(
                    unit, name, found.rejected.count, found.rejected.example, line
                )
            if found.gave_up:
                self._findings.pattern_is_given_up(unit, name)
        if self._reads_stdout and stream is Stream.STDOUT:
            self._add_emitted(unit, emitted.object_lines(block))

    def _matcher(self, unit: str) -> Matcher:
        if all(definition.unit is None for definition in self._metrics):
            return self._everywhere
        if unit not in self._matchers:
            wanted = [metric for metric in self._metrics if metric.unit in (None, unit)]
            self._matchers[unit] = Matcher(wanted)
        return self._matchers[unit]

    def _read_emitted(self, unit: str, block: bytes) -> None:
        self._add_emitted(unit, block.split(b"\n"))

    def _add_emitted(self, unit: str, lines: Sequence[bytes]) -> None:
        for name, values in emitted.read(lines, unit, self._findings).items():
            self._add(unit, name, MetricSource.EMITTED, self._units.get(name, ""), values)

    def _read_resources(self, reading: ResourceReading) -> None:
        for name, units, value in resources.measured(reading, self._meter(reading.unit)):
            self._add(reading.unit, name, MetricSource.RESOURCE, units, [value])

    def _note_totals(self, ended: UnitEnded) -> None:
        for name, units, value in resources.totals(ended):
            key = MetricKey(unit=ended.unit, name=name, source=MetricSource.RESOURCE)
            self._samples.note(key, units, value)

    def _meter(self, unit: str) -> resources.CpuMeter:
        return self._meters.setdefault(unit, resources.CpuMeter())

    def _add(
        self, unit: str, name: str, source: MetricSource, units: str, values: Sequence[float]
    ) -> None:
        if not values:
            return
        key = MetricKey(unit=unit, name=name, source=source)
        if not self._samples.add(key, units, self._last_at, values):
            self._findings.name_is_refused(unit, name, len(values))

    async def _append_samples(self) -> None:
        if columns := self._samples.take():
            await self._writer.append(columns)

    async def _summaries(self) -> tuple[Summary, ...]:
        summaries = []
        for series in self._samples.ordered():
            if series.keeps_everything or series.count > MOST_SORTED:
                summaries.append(series.summary())
                continue
            values = await self._writer.values(series.key)
            summaries.append(await asyncio.to_thread(exact_summary, series, values))
        return tuple(summaries)


async def _run(size: int, work: Callable[[], None]) -> None:
    """Do small work here and big work in a thread."""
    if size > INLINE_BYTES:
        await asyncio.to_thread(work)
    else:
        work()
