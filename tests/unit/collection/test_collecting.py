"""The collector turns observations into a log, series and statistics."""

from __future__ import annotations

import asyncio
import pathlib
from datetime import timedelta

import pytest

from anubis.adapters.log_store.local import LocalLogStore
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.series_store.directory import DirectorySeriesStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.domain.metric import MetricDefinition, MetricKey, MetricSource
from anubis.domain.observation import (
    EmittedChunk,
    EndCause,
    GpuReading,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitStarted,
)
from anubis.ports.log_store import LogQuery
from anubis.stages.collection import findings
from anubis.stages.collection.collecting import Collected, Collector
from anubis.testing import builders
from anubis.testing.clock import NOON

RUN = builders.a_run_id(1)
LOSS = MetricDefinition(name="loss", units="nats", pattern=r"loss=(\S+)")
SECOND = timedelta(seconds=1)


class Bench:
    """A collector over memory stores."""

    def __init__(self) -> None:
        self.logs = MemoryLogStore()
        self.series = MemorySeriesStore()

    async def start(
        self, *metrics: MetricDefinition, json_lines_on_stdout: bool = False
    ) -> Collector:
        return Collector(
            metrics,
            await self.logs.writer(RUN),
            await self.series.writer(RUN),
            json_lines_on_stdout=json_lines_on_stdout,
        )

    async def collect(
        self,
        *observations: Observation,
        metrics: tuple[MetricDefinition, ...] = (LOSS,),
        json_lines_on_stdout: bool = False,
    ) -> Collected:
        collector = await self.start(*metrics, json_lines_on_stdout=json_lines_on_stdout)
        for observation in observations:
            await collector.feed(observation)
        return await collector.finish()

    async def output(self) -> bytes:
        return b"".join([line.text async for line in self.logs.lines(RUN, LogQuery())])

    async def values(self, name: str, source: MetricSource, unit: str = "u") -> list[float]:
        key = MetricKey(unit=unit, name=name, source=source)
        return list((await self.series.read(RUN, key))[1])


@pytest.fixture
def bench() -> Bench:
    return Bench()


def out(
    data: bytes, second: int = 0, unit: str = "u", stream: Stream = Stream.STDOUT
) -> OutputChunk:
    return OutputChunk(unit=unit, at=NOON + second * SECOND, stream=stream, data=data)


def emitted(data: bytes, second: int = 0) -> EmittedChunk:
    return EmittedChunk(unit="u", at=NOON + second * SECOND, data=data)


def reading(second: float, cpu: float, **more: object) -> ResourceReading:
    return ResourceReading(
        unit="u",
        at=NOON + second * SECOND,
        cpu_seconds=cpu,
        memory_bytes=1_000,
        read_bytes=10,
        written_bytes=20,
        threads=3,
        processes=2,
        gpus=(GpuReading(index=0, utilisation=0.5, memory_bytes=7, power_watts=55.5),)
        if more.get("gpu")
        else (),
    )


async def test_samples_are_found_in_lines_that_were_cut_anywhere(bench: Bench) -> None:
    result = await bench.collect(out(b"step 1 lo"), out(b"ss=0.5 x loss=0.25\nlos"), out(b"s=2", 1))

    assert await bench.values("loss", MetricSource.PATTERN) == [0.5, 0.25, 2.0]
    assert await bench.output() == b"step 1 loss=0.5 x loss=0.25\nloss=2"
    assert (result.lines, result.output_bytes) == (2, 34)
    assert result.warnings == ()


async def test_both_streams_are_searched_and_do_not_mix(bench: Bench) -> None:
    await bench.collect(
        out(b"loss="), out(b"loss=7\n", stream=Stream.STDERR), out(b"8\n", 1), metrics=(LOSS,)
    )

    assert await bench.values("loss", MetricSource.PATTERN) == [7.0, 8.0]


async def test_a_summary_tells_the_statistics_with_the_declared_units(bench: Bench) -> None:
    result = await bench.collect(out(b"loss=1\nloss=2\nloss=3\nloss=4\n"))

    [summary] = result.summaries
    assert summary.key == MetricKey(unit="u", name="loss", source=MetricSource.PATTERN)
    assert (summary.units, summary.count, summary.mean, summary.median) == ("nats", 4, 2.5, 2.5)
    assert (summary.minimum, summary.maximum, summary.first, summary.last) == (1, 4, 1, 4)
    spread = [summary.std, summary.p90, summary.p95, summary.p99]
    assert spread == pytest.approx([1.2909944487, 3.7, 3.85, 3.97])


async def test_a_metric_of_one_unit_is_not_searched_in_others(bench: Bench) -> None:
    metric = MetricDefinition(name="loss", units="", pattern=r"loss=(\S+)", unit="client")

    await bench.collect(out(b"loss=1\n", unit="client"), out(b"loss=2\n"), metrics=(metric,))

    assert await bench.values("loss", MetricSource.PATTERN, "client") == [1.0]
    assert await bench.values("loss", MetricSource.PATTERN, "u") == []


async def test_matches_that_are_no_numbers_are_reported_with_their_line(bench: Bench) -> None:
    result = await bench.collect(out(b"hello\nloss=1\n"), out(b"\nloss=oops\nloss=nan\n"))

    assert await bench.values("loss", MetricSource.PATTERN) == [1.0]
    [warning] = result.warnings
    assert "'loss': 2 matches" in warning
    assert "'oops' in line 4" in warning


async def test_emitted_lines_become_samples(bench: Bench) -> None:
    result = await bench.collect(
        emitted(b'{"acc": 0.5, "n'), emitted(b'": "3", "done": true}\n{"acc": 1}', 1)
    )

    assert await bench.values("acc", MetricSource.EMITTED) == [0.5, 1.0]
    assert await bench.values("n", MetricSource.EMITTED) == [3.0]
    assert await bench.values("done", MetricSource.EMITTED) == [1.0]
    assert result.warnings == ()
    assert result.lines == 0


async def test_emitted_values_that_are_no_numbers_are_reported_once_per_name(bench: Bench) -> None:
    line = b'{"a": "text", "b": {"c": 1}, "d": NaN, "e": null, "f": 1' + b"0" * 400 + b"}\n"

    result = await bench.collect(emitted(line * 3))

    assert len(result.warnings) == 5
    assert all("3 values" in warning for warning in result.warnings)
    assert result.summaries == ()


async def test_emitted_lines_that_are_no_objects_are_reported(bench: Bench) -> None:
    deep = b"[" * 100_000 + b"\n"

    result = await bench.collect(emitted(b"{oops\n[1]\n\n\xff\xfe\n" + deep))

    [warning] = result.warnings
    assert "4 lines" in warning
    assert "{oops" in warning


async def test_json_objects_on_stdout_are_samples_only_if_asked_for(bench: Bench) -> None:
    chunk = out(b'start\n{"acc": 0.5}\n {"acc": 1}\n{"acc": 2} tail\n{"acc": 3}\r\n')

    await bench.collect(chunk, json_lines_on_stdout=True)
    asked = await bench.values("acc", MetricSource.EMITTED)
    await bench.collect(chunk)

    assert asked == [0.5, 3.0]
    assert await bench.values("acc", MetricSource.EMITTED) == []


async def test_resource_readings_become_samples(bench: Bench) -> None:
    result = await bench.collect(
        UnitStarted(unit="u", at=NOON), reading(1, 0.5), reading(3, 4.5, gpu=True)
    )

    assert await bench.values("cpu_percent", MetricSource.RESOURCE) == [50.0, 200.0]
    assert await bench.values("memory_bytes", MetricSource.RESOURCE) == [1_000.0, 1_000.0]
    assert await bench.values("gpu0_utilisation", MetricSource.RESOURCE) == [50.0]
    assert {summary.key.name: summary.units for summary in result.summaries} == {
        "cpu_percent": "percent",
        "memory_bytes": "bytes",
        "read_bytes": "bytes",
        "written_bytes": "bytes",
        "threads": "",
        "processes": "",
        "gpu0_utilisation": "percent",
        "gpu0_memory_bytes": "bytes",
        "gpu0_power_watts": "watts",
    }


async def test_live_statistics_change_with_the_revision(bench: Bench) -> None:
    collector = await bench.start(LOSS)
    before = collector.revision
    await collector.feed(out(b"loss=1\nloss=3\n"))

    assert collector.revision > before
    [summary] = collector.live()
    assert (summary.count, summary.mean, summary.last) == (2, 2.0, 3.0)


async def test_a_flush_makes_lines_and_samples_visible(bench: Bench) -> None:
    collector = await bench.start(LOSS)
    await collector.feed(out(b"loss=1\nunfinished"))
    await collector.flush()

    assert await bench.output() == b"loss=1\n"
    assert await bench.values("loss", MetricSource.PATTERN) == [1.0]


async def test_the_last_lines_of_each_unit_are_at_hand(bench: Bench) -> None:
    result = await bench.collect(
        out(b"".join(b"line %d\n" % number for number in range(50))),
        out(b"\xff" + b"x" * 1_000 + b"\n", stream=Stream.STDERR),
        out(b"end"),
        out(b"other\n", unit="v"),
    )

    lines = result.last_lines["u"]
    assert len(lines) == 20
    assert lines[-3:] == ("line 49", "\ufffd" + "x" * 499, "end")
    assert result.last_lines["v"] == ("other",)


async def test_too_many_metrics_are_refused_and_reported(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anubis.stages.collection.samples.MOST_METRICS", 3)

    result = await bench.collect(
        emitted(b'{"a": 1, "b": 1, "c": 1, "d": 1}\n{"d": 1, "a": 2}\n'),
        emitted(b'{"' + b"n" * (findings.LONGEST_NAME + 1) + b'": 1}\n'),
    )

    assert [summary.key.name for summary in result.summaries] == ["a", "b", "c"]
    assert len(result.warnings) == 1
    assert "3 values" in result.warnings[0]


async def test_percentiles_of_a_long_series_are_exact(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anubis.stages.collection.collecting.MOST_PENDING", 1_000)
    block = b"".join(b"loss=%d\n" % (number * 7919 % 10_001) for number in range(10_001))

    result = await bench.collect(
        *[out(block[at : at + 9_999]) for at in range(0, len(block), 9_999)]
    )

    [summary] = result.summaries
    assert summary.count == 10_001
    assert (summary.median, summary.p90, summary.p99) == (5_000.0, 9_000.0, 9_900.0)


async def test_large_chunks_are_collected_like_small_ones(bench: Bench) -> None:
    text = b"".join(b"step %d loss=%d\n" % (number, number % 10) for number in range(50_000))

    result = await bench.collect(out(text))

    assert await bench.output() == text
    assert len(await bench.values("loss", MetricSource.PATTERN)) == 50_000
    assert result.lines == 50_000


async def test_a_run_without_output_leaves_no_file(tmp_path: pathlib.Path) -> None:
    collector = Collector(
        [LOSS],
        await LocalLogStore(tmp_path / "logs").writer(RUN),
        await DirectorySeriesStore(tmp_path / "series").writer(RUN),
        json_lines_on_stdout=True,
    )
    await collector.feed(UnitStarted(unit="u", at=NOON))
    await collector.flush()
    await collector.feed(UnitEnded(unit="u", at=NOON, cause=EndCause.EXITED, exit_code=0))
    await collector.finish()

    assert list(tmp_path.iterdir()) == []


async def test_a_declared_metric_without_a_value_is_reported(bench: Bench) -> None:
    other = MetricDefinition(name="accuracy", units="", pattern="acc=(.+)")

    result = await bench.collect(out(b"loss=oops\n"), metrics=(LOSS, other))

    assert len(result.warnings) == 2
    assert result.warnings[1] == (
        "Metric 'accuracy' has no value: nothing in the output matches 'acc=(.+)'."
    )


async def test_a_flush_may_come_while_a_large_chunk_is_taken(bench: Bench) -> None:
    text = b"".join(b"loss=%d\n" % (number % 10) for number in range(200_000))
    collector = await bench.start(LOSS)

    await asyncio.gather(collector.feed(out(text)), *[collector.flush() for _ in range(5)])
    collector.live()
    await collector.finish()

    assert await bench.output() == text
    assert len(await bench.values("loss", MetricSource.PATTERN)) == 200_000
