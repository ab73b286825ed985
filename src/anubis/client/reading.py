"""Everything about runs that can be looked at: the ports RunReader, LogReader and most of History,
answered by a service.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Final

from anubis.client import calling, following, parsing
from anubis.client.calling import Call, segment
from anubis.client.fields import Fields
from anubis.client.transport import Transport
from anubis.domain import identity
from anubis.domain.document import Document, Fingerprint
from anubis.domain.errors import RunNotFound
from anubis.domain.event import Event
from anubis.domain.logline import LogLine
from anubis.domain.metric import Summary
from anubis.domain.run import BEFORE_START, Run, RunId, RunState
from anubis.ports.history import Group, TrendPoint, TrendQuery
from anubis.ports.log_store import LogQuery
from anubis.ports.run_reader import RunQuery

LARGEST_PAGE: Final = 500
"""The most that the service gives at once; more is asked for page by page."""


class Reader:
    """Looks at the runs of a service. Every call is safe to repeat, and repeated."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, run_id: RunId) -> Run:
        """Give a run. Raises RunNotFound."""
        return parsing.run(await self._ask(f"/runs/{segment(run_id)}", "run"))

    async def resolve(self, reference: str) -> RunId:
        """Find the run meant by a full id, a unique prefix, or ``last``."""
        if reference.strip().lower() != "last" and identity.prefix(reference) is None:
            # Known without asking, and "counts" would be another route.
            raise RunNotFound(
                f"{reference!r} names no run: give an id, the start of one, or 'last'"
            )
        return (await self.get(RunId(reference.strip()))).id

    async def page(self, query: RunQuery) -> Sequence[Run]:
        """Give at most ``query.limit`` runs, newest first."""
        runs, cursor = list[Run](), None if query.before is None else str(query.before)
        while len(runs) < query.limit:
            wanted = min(query.limit - len(runs), LARGEST_PAGE)
            call = Call(path="/runs", query=_filters(query, cursor, wanted))
            fields = await self._fields(call, "runs")
            runs += [parsing.run(one) for one in fields.parts("runs")]
            cursor = fields.maybe_text("next")
            if cursor is None:
                break
        return runs

    async def waiting(self, run_id: RunId) -> str:
        """Why a run has not started, in a sentence; empty for one that has."""
        fields = await self._ask(f"/runs/{segment(run_id)}", "run")
        return fields.maybe_text("waiting_for") or ""

    async def waitings(self, runs: Collection[RunId]) -> Mapping[RunId, str]:
        """Why those of these runs that have not started wait, each in a sentence."""
        found, cursor = dict[RunId, str](), None
        query = RunQuery(states=BEFORE_START)
        while runs:
            asked = _filters(query, cursor, LARGEST_PAGE)
            page = await self._fields(Call(path="/runs", query=asked), "runs")
            shapes = {RunId(one.text("id")): one for one in page.parts("runs")}
            for run_id in shapes.keys() & set(runs):
                found[run_id] = shapes[run_id].maybe_text("waiting_for") or ""
            cursor = page.maybe_text("next")
            if cursor is None or cursor <= min(runs):  # ids grow with time, pages go back in it
                break
        return {run_id: reason for run_id, reason in found.items() if reason}

    async def counts(self) -> Mapping[RunState, int]:
        """How many runs are in each state."""
        counts = (await self._ask("/runs/counts", "counts")).part("counts")
        return {state: counts.whole(state) for state in RunState if counts.has(state)}

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with a number above ``after``, in order."""
        path = f"/runs/{segment(run_id)}/events"
        return await self._events(path, after=after, limit=limit)

    async def feed(self, *, after: int, limit: int = 1000) -> Sequence[Event]:
        """Events of all runs with a sequence above ``after``, in the order they were stored."""
        return await self._events("/events", after=after, limit=limit)

    async def document(self, run_id: RunId) -> Document:
        """The exact descriptor of a run."""
        return await self.document_at(f"/runs/{segment(run_id)}/descriptor")

    async def fingerprint(self, run_id: RunId) -> Fingerprint | None:
        """The environment the run had, once it is known."""
        call = Call(path=f"/runs/{segment(run_id)}/environment")
        answer = (await self._transport.send(call)).json()
        return None if answer is None else parsing.fingerprint(Fields(answer, "environment"))

    async def summaries(self, run_id: RunId) -> Sequence[Summary]:
        """The statistics of the run's metrics."""
        fields = await self._ask(f"/runs/{segment(run_id)}/metrics", "metrics")
        return [parsing.summary(one) for one in fields.parts("metrics")]

    def lines(self, run_id: RunId, query: LogQuery | None = None) -> AsyncGenerator[LogLine, None]:
        """The lines that match, in order, byte for byte, as many as there are."""
        return following.lines(self._transport, run_id, query or LogQuery())

    def text(self, run_id: RunId, query: LogQuery | None = None) -> AsyncGenerator[bytes, None]:
        """The texts of the lines that match, joined, in pieces of any size."""
        return following.text(self._transport, run_id, query or LogQuery())

    async def benchmarks(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """Benchmarks with runs, by name, those that sort above ``after``."""
        return await self._groups("benchmarks", after=after, limit=limit)

    async def families(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """Families with runs, by name, those that sort above ``after``."""
        return await self._groups("families", after=after, limit=limit)

    async def trend(self, query: TrendQuery) -> Sequence[TrendPoint]:
        """The points of runs of a benchmark that SUCCEEDED and measured the metric, newest first.

        One page: at most ``LARGEST_PAGE`` runs are looked at.
        """
        asked = calling.query(
            metric=query.metric,
            unit=query.unit,
            cursor=query.before,
            limit=min(query.limit, LARGEST_PAGE),
        )
        call = Call(path=f"/benchmarks/{segment(query.benchmark)}/trend", query=asked)
        fields = await self._fields(call, "trend")
        return [parsing.trend_point(one) for one in fields.parts("points")]

    async def _events(self, path: str, *, after: int, limit: int) -> list[Event]:
        events, cursor = list[Event](), after
        while len(events) < limit:
            asked = calling.query(after=cursor, limit=min(limit - len(events), LARGEST_PAGE))
            fields = await self._fields(Call(path=path, query=asked), "events")
            events += [parsing.event(one) for one in fields.parts("events")]
            following_one = fields.maybe_whole("next")
            if following_one is None:
                break
            cursor = following_one
        return events

    async def _groups(self, kind: str, *, after: str, limit: int) -> list[Group]:
        groups, cursor = list[Group](), after or None
        while len(groups) < limit:
            wanted = min(limit - len(groups), LARGEST_PAGE)
            call = Call(path=f"/{kind}", query=calling.query(after=cursor, limit=wanted))
            fields = await self._fields(call, kind)
            groups += [parsing.group(one) for one in fields.parts(kind)]
            cursor = fields.maybe_text("next")
            if cursor is None:
                break
        return groups

    async def document_at(self, path: str) -> Document:
        """The exact descriptor under a path of the API."""
        fields = await self._ask(path, "descriptor")
        content = fields.text("content").encode()
        document = Document(
            name=fields.text("name"),
            directory=fields.text("directory"),
            content=content,
            script=fields.text("script") if fields.has("script") else "",  # older services
        )
        if document.sha == fields.text("sha"):
            return document
        # Bytes that are no text cannot travel in JSON: ask for them as they are.
        exact = await self._transport.send(Call(path=path, headers={"Accept": "application/toml"}))
        return dataclasses.replace(document, content=exact.content)

    async def _ask(self, path: str, place: str) -> Fields:
        return await self._fields(Call(path=path), place)

    async def _fields(self, call: Call, place: str) -> Fields:
        return Fields((await self._transport.send(call)).json(), place)


def _filters(query: RunQuery, cursor: str | None, limit: int) -> list[tuple[str, str]]:
    return [
        *(("state", state.value) for state in query.states),
        *(("label", calling.plain(f"{name}={value}")) for name, value in query.labels),
        *calling.query(
            benchmark=query.benchmark,
            family=query.family,
            user=query.submitter,
            since=None if query.since is None else query.since.isoformat(),
            until=None if query.until is None else query.until.isoformat(),
            cursor=cursor,
            limit=limit,
        ),
    ]
