"""What a client that polls is told: the story of an action, from where it stopped."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Sequence
from datetime import datetime

from anubis.bootstrap.service import Service
from anubis.domain.action import Action
from anubis.domain.document import Document
from anubis.domain.errors import RunNotFound
from anubis.domain.event import Event, EventKind
from anubis.domain.run import Run, RunId, RunState
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.entrypoints.api.legacy import envelopes, keeping, paging, telling, words
from anubis.entrypoints.api.legacy.envelopes import EventShape, Origin
from anubis.entrypoints.api.legacy.finding import Subject
from anubis.entrypoints.api.legacy.keeping import KeptSubmission
from anubis.entrypoints.api.legacy.reading import SenderShape, VisitShape
from anubis.entrypoints.api.legacy.telling import Line
from anubis.entrypoints.api.legacy.words import Speaker
from anubis.ports.schedule_store import ScheduleEvent

_MANY = 1000
"""Events read at a time."""

_DATA = (b"sources", b"models")
"""A descriptor without these words names nothing to fetch, and need not be read to know it."""

DATE = "%a %b %d %H:%M:%S UTC %Y"
"""As the original client writes dates."""


async def messages(
    service: Service, subject: Subject, since: str, address: str
) -> list[EventShape]:
    """The messages after ``since``. ``address`` is where this service is reached."""
    lines = await _lines(service, subject, address)
    page = paging.page(paging.placed(subject.id, lines), since)
    if not page:
        return []
    origin = await _origin(service, subject)
    first = lines[0].mark
    return [envelopes.event(origin, one, is_first=one.line.mark == first) for one in page]


async def _lines(service: Service, subject: Subject, address: str) -> list[Line]:
    if subject.command is not None:
        return await _of_command(service, subject.command)
    if subject.schedule is not None:
        fired = await schedule_events(service, subject.schedule.id)
        commands = await service.actions.commands(subject.id)
        return telling.of_schedule(subject.id, fired, [keeping.told(one) for one in commands])
    assert subject.run is not None, "a subject is one of three"
    events = await _events(service, subject.run.id)
    setting = telling.Setting(
        address=f"{address}/api/v1/runs/{subject.run.id}/metrics",
        is_spawned=subject.parent is not None,
        has_data=await _has_data(service, subject.run.id, events),
    )
    return telling.of_run(subject.run, events, setting)


async def _has_data(service: Service, run_id: RunId, events: Sequence[Event]) -> bool:
    """Whether a run has something to fetch. Its events tell once that has begun; before, and for
    runs that have nothing, only the descriptor does.
    """
    if any("fetch" in event.data for event in events):
        return True
    try:
        document = await service.application.store.document(run_id)
    except RunNotFound:  # purged a moment ago
        return False
    if not any(word in document.content for word in _DATA):
        return False
    # In a thread: a descriptor of a megabyte takes a second to read.
    return await asyncio.to_thread(envelopes.has_data, document.content)


async def _of_command(service: Service, action: Action) -> list[Line]:
    command = keeping.told(action)
    try:
        run = await service.application.store.get(RunId(command.target))
    except RunNotFound:  # a schedule, something purged, or nothing
        return telling.of_command(command, None, has_ended=True)
    ended = [event for event in await _events(service, run.id) if _is_end(event)]
    return telling.of_command(command, ended[0] if ended else None, has_ended=bool(ended))


def _is_end(event: Event) -> bool:
    return event.kind is EventKind.STATE and RunState(str(event.data["to"])).is_terminal


async def _events(service: Service, run_id: RunId) -> Sequence[Event]:
    """All events of a run; none if it was purged a moment ago."""
    found = list[Event]()
    while True:
        after = found[-1].number if found else 0
        try:
            page = await service.application.store.events(run_id, after=after, limit=_MANY)
        except RunNotFound:
            return found
        found += page
        if len(page) < _MANY:
            return found


async def schedule_events(service: Service, schedule_id: ScheduleId) -> Sequence[ScheduleEvent]:
    """All events of a schedule. Raises ScheduleNotFound."""
    found = list[ScheduleEvent]()
    while True:
        after = found[-1].number if found else 0
        page = await service.application.schedules.events(schedule_id, after=after, limit=_MANY)
        found += page
        if len(page) < _MANY:
            return found


async def _origin(service: Service, subject: Subject) -> Origin:
    """The message that began the action, or the one that a client would have sent."""
    node = socket.gethostname()
    if subject.command is not None:
        payload = keeping.payload(subject.command)
        return Origin(
            action_id=subject.id,
            parent_action_id=None,
            client_id=subject.client_id,
            sender=keeping.command(subject.command)["sender"],
            tstamp=paging.milliseconds(subject.command.at),
            payload=payload,
            brief=payload,
            node=node,
        )
    document, began = await _document(service, subject)
    kept = _kept(subject, document, began)
    # In a thread: a descriptor of a megabyte takes a second to read.
    whole, brief = await asyncio.to_thread(
        envelopes.submission,
        document.content,
        kept["filename"],
        kept["sha1"],
        verified=kept["verified"],
    )
    return Origin(
        action_id=subject.id,
        parent_action_id=subject.parent,
        client_id=subject.client_id,
        sender=kept["sender"],
        tstamp=paging.milliseconds(began),
        payload=whole,
        brief=brief,
        node=node,
    )


async def _document(service: Service, subject: Subject) -> tuple[Document, datetime]:
    """What was submitted, and when."""
    application, found = service.application, subject.run or subject.schedule
    if isinstance(found, Run):
        return await application.store.document(found.id), found.submitted_at
    assert isinstance(found, Schedule), "a subject that is no command is one of two"
    return await application.schedules.document(found.id), found.created_at


def _kept(subject: Subject, document: Document, began: datetime) -> KeptSubmission:
    if subject.submission is not None:
        return keeping.submission(subject.submission)
    return KeptSubmission(
        sender=_sender(subject.client_id, began),
        filename=document.name,
        sha1=hashlib.sha1(document.content, usedforsecurity=False).hexdigest(),
        verified=True,
    )


def _sender(user: str, at: datetime) -> SenderShape:
    """Who sent what came another way."""
    version = words.VERSIONS[Speaker.CLIENT]
    tstamp = paging.milliseconds(at)
    return SenderShape(
        client_version=version,
        client_sha1="",
        client_username=user,
        date=at.strftime(DATE),
        visited=[VisitShape(svc=Speaker.CLIENT, tstamp=tstamp, version=version, node=None)],
    )
