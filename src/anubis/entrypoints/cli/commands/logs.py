"""``anubis logs``: the output of a run, byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import operator
from collections.abc import Callable, Sequence

import click

from anubis.bootstrap.application import Application
from anubis.domain.errors import ServiceUnavailable
from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.domain.run import RunId
from anubis.entrypoints.cli import exits, following, naming, options, session, terminal
from anubis.entrypoints.cli.rendering import output
from anubis.ports.log_store import LogQuery
from anubis.stages.presentation import shapes

_PAUSE = 0.2
"""Seconds between looks for new output: soon enough for a person, rare enough for the program."""

_BATCH = 4096
_STREAMS = click.Choice([stream.value for stream in Stream])


@click.command("logs")
@options.run_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--unit", "units", multiple=True, metavar="UNIT", help="Only output of this unit.")
@click.option("--stream", "streams", multiple=True, type=_STREAMS, help="Only this stream.")
@click.option("--grep", "contains", metavar="TEXT", default="", help="Only lines with this text.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@click.option("--timestamps", is_flag=True, help="Put the moment (UTC) before every line.")
@click.option("--names", is_flag=True, help="Put the unit that wrote it before every line.")
@options.as_json
@click.pass_obj
def logs_command(
    opener: session.Opener | None,
    run: str,
    follow: bool,
    units: Sequence[str],
    streams: Sequence[str],
    contains: str,
    tail: int | None,
    timestamps: bool,
    names: bool,
    as_json: bool,
) -> int:
    """Print the output of a run, byte for byte.

    With --json, one object per line of output; bytes that are not UTF-8 are replaced.
    """
    query = LogQuery(
        units=units, streams=[Stream(one) for one in streams], contains=contains, tail=tail
    )
    style = _Style(as_json=as_json, timestamps=timestamps, names=names)

    async def work(application: Application) -> int:
        run_id = await application.store.resolve(run)
        printer = _Printer(application, run_id, query, style)
        if follow:
            return await _follow(application, run_id, printer)
        await _must_have(application, run_id, units)
        if style.is_by_line:
            await printer.print_new()
        else:
            await _print_text(application, run_id, query)
        return 0

    return session.read(opener, work)


async def _print_text(application: Application, run_id: RunId, query: LogQuery) -> None:
    """All that matches, as it was written."""
    async with contextlib.aclosing(application.logs.text(run_id, query)) as pieces:
        async for piece in pieces:
            terminal.write(piece)


async def _must_have(application: Application, run_id: RunId, units: Sequence[str]) -> None:
    """Raise UserError for a unit that wrote and measured nothing, when others did."""
    known = {summary.key.unit for summary in await application.store.summaries(run_id)}
    for unit in set(units) - known:
        last = LogQuery(units=[unit], tail=1)
        known |= {line.unit async for line in application.logs.lines(run_id, last)}
    if set(units) <= known:
        return
    everything = application.logs.lines(run_id, LogQuery())
    known |= {line.unit async for line in everything}
    if known:  # else it has not begun to write, and nobody can tell
        naming.must_be_known("unit", units, known)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Style:
    as_json: bool
    timestamps: bool
    names: bool

    @property
    def is_by_line(self) -> bool:
        """Whether something is added to lines; else they are printed as they were written."""
        return self.as_json or self.timestamps or self.names


class _Printer:
    """Prints each line once, however often it is asked."""

    def __init__(
        self, application: Application, run_id: RunId, query: LogQuery, style: _Style
    ) -> None:
        self._application = application
        self._run_id = run_id
        self._wanted = query
        self._query = query
        self._rendered = _rendering(style)

    @property
    def units(self) -> Sequence[str]:
        """Those whose output is wanted; none: all."""
        return list(self._wanted.units)

    async def print_new(self) -> None:
        """Print what has been stored since the last call."""
        if self._query.tail == 0:  # nothing of what is there, but all that comes
            newest = self._application.logs.lines(self._run_id, LogQuery(tail=1))
            self._query = LogQuery(after=max([line.number async for line in newest], default=0))
            return
        last, pieces = self._query.after, list[bytes]()
        is_filtered = self._query is self._wanted
        lines = self._application.logs.lines(self._run_id, self._query)
        try:
            async with contextlib.aclosing(lines):
                async for line in lines:
                    last = line.number
                    if is_filtered or _matches(line, self._wanted):
                        pieces.append(self._rendered(line))
                        if len(pieces) >= _BATCH:
                            _write(pieces)
        except ServiceUnavailable:
            _write(pieces)
            self._query = LogQuery(after=last) if last else self._query
            raise
        _write(pieces)
        # From now on everything after the last line, filtered here: a filter in the store would
        # make it search the same lines again and again while nothing matches.
        self._query = LogQuery(after=last)


def _write(pieces: list[bytes]) -> None:
    """Write many lines at once: one by one costs more than reading them."""
    terminal.write(b"".join(pieces))
    pieces.clear()


def _rendering(style: _Style) -> Callable[[LogLine], bytes]:
    if style.as_json:
        return lambda line: shapes.line(shapes.line_shape(line)).encode()
    if not style.is_by_line:
        return operator.attrgetter("text")
    return output.prefixed(timestamps=style.timestamps, names=style.names)


def _matches(line: LogLine, query: LogQuery) -> bool:
    return (
        (not query.units or line.unit in query.units)
        and (not query.streams or line.stream in query.streams)
        and query.contains.encode("utf-8", "surrogateescape") in line.text
    )


async def _follow(application: Application, run_id: RunId, printer: _Printer) -> int:
    outage = following.Outage(application.clock)
    async with following.Interrupts() as interrupts:
        while True:
            async with outage.borne():
                # Asked before reading: output that comes after the end was there at the end.
                run = await application.store.get(run_id)
                await printer.print_new()
                if run.state.is_terminal:
                    await _must_have(application, run_id, printer.units)
                    return 0
            await asyncio.wait({interrupts.next}, timeout=_PAUSE)
            if interrupts.take():
                return exits.INTERRUPTED
            await application.ensure_runtime()
