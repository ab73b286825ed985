"""Schedules of a service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from anubis.client import accounts, calling, handing_in, parsing
from anubis.client.calling import Call, segment
from anubis.client.fields import Fields
from anubis.client.reading import LARGEST_PAGE, Reader
from anubis.client.transport import Transport
from anubis.client.values import Scheduled
from anubis.domain.document import Document
from anubis.domain.errors import ScheduleNotFound
from anubis.domain.run import Run
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery


class SchedulesClient:
    """All that can be done with schedules; on whose behalf, the service knows by itself."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._reader = Reader(transport)

    async def add(self, document: Document, wishes: handing_in.Wishes | None = None) -> Scheduled:
        """Store a schedule. Repeated like ``submit``: its key sees to it that this makes one."""
        call = handing_in.call("/schedules", document, wishes)
        call = handing_in.keyed(call, None if wishes is None else wishes.key)
        fields = await self._fields(call, "answer")
        return Scheduled(
            schedule=accounts.schedule(fields.part("schedule")),
            warnings=parsing.problems(fields, "warnings"),
        )

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Give a schedule. Raises ScheduleNotFound."""
        return accounts.schedule(await self._one(schedule_id))

    async def resolve(self, reference: str) -> ScheduleId:
        """Find the schedule meant by an id, a prefix or a benchmark.

        Raises ScheduleNotFound or ScheduleAmbiguous.
        """
        return (await self.get(ScheduleId(reference))).id

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """Give schedules, newest first."""
        schedules, cursor = list[Schedule](), None if query.before is None else str(query.before)
        while len(schedules) < query.limit:
            limit = min(query.limit - len(schedules), LARGEST_PAGE)
            asked = calling.query(user=query.submitter, cursor=cursor, limit=limit)
            fields = await self._fields(Call(path="/schedules", query=asked), "schedules")
            schedules += [accounts.schedule(one) for one in fields.parts("schedules")]
            cursor = fields.maybe_text("next")
            if cursor is None:
                break
        return schedules

    async def document(self, schedule_id: ScheduleId) -> Document:
        """The exact descriptor of a schedule."""
        return await self._reader.document_at(f"{_path(schedule_id)}/descriptor")

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """What happened to a schedule, in order."""
        events, cursor = list[ScheduleEvent](), after
        while len(events) < limit:
            asked = calling.query(after=cursor, limit=min(limit - len(events), LARGEST_PAGE))
            call = Call(path=f"{_path(schedule_id)}/events", query=asked)
            fields = await self._fields(call, "events")
            events += [accounts.schedule_event(one) for one in fields.parts("events")]
            next_one = fields.maybe_whole("next")
            if next_one is None:
                break
            cursor = next_one
        return events

    async def upcoming(self, schedule_id: ScheduleId) -> Sequence[datetime]:
        """The next few firings; none while it is paused."""
        return (await self._one(schedule_id)).moments("upcoming")

    async def pause(self, schedule_id: ScheduleId) -> Schedule:
        """Let nothing fire until it is resumed. Pausing it again changes nothing."""
        return await self._changed(schedule_id, "pause")

    async def resume(self, schedule_id: ScheduleId) -> Schedule:
        """Let it fire again, from now on. Resuming it again changes nothing."""
        return await self._changed(schedule_id, "resume")

    async def run_now(self, schedule_id: ScheduleId) -> Run:
        """Submit a run of it now, as one more member of its family. Never repeated by itself."""
        call = calling.post(f"{_path(schedule_id)}/run")
        return parsing.run((await self._fields(call, "answer")).part("run"))

    async def remove(self, schedule_id: ScheduleId) -> None:
        """Forget it. Its runs stay."""
        call = Call(method="DELETE", path=_path(schedule_id), done_if=ScheduleNotFound)
        await self._transport.send(call)

    async def _changed(self, schedule_id: ScheduleId, verb: str) -> Schedule:
        call = calling.post(f"{_path(schedule_id)}/{verb}", is_repeatable=True)
        return accounts.schedule(await self._fields(call, "schedule"))

    async def _one(self, schedule_id: ScheduleId) -> Fields:
        return await self._fields(Call(path=_path(schedule_id)), "schedule")

    async def _fields(self, call: Call, place: str) -> Fields:
        return Fields((await self._transport.send(call)).json(), place)


def _path(schedule_id: ScheduleId) -> str:
    return f"/schedules/{segment(schedule_id)}"
