"""What a service says about itself, its engines, its schedules and its users, as values."""

from __future__ import annotations

from anubis.client import parsing
from anubis.client.fields import Fields
from anubis.client.values import EngineReport, Health, Me
from anubis.domain.access import Role, Token, TokenId
from anubis.domain.event import EventKind
from anubis.domain.schedule import CatchUp, Overlap, Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent
from anubis.stages.access.tokens import Issued


def me(fields: Fields) -> Me:
    """As whom the service sees us."""
    token = fields.maybe_word("token")
    return Me(
        user=fields.word("user"),
        role=fields.choice("role", Role),
        token=None if token is None else TokenId(token),
        requires_tokens=fields.flag("requires_tokens"),
    )


def health(fields: Fields) -> Health:
    """That the service lives."""
    return Health(
        status=fields.word("status"),
        version=fields.word("version"),
        started_at=fields.moment("started_at"),
    )


def engine(fields: Fields) -> EngineReport:
    """What an engine can do."""
    return EngineReport(
        name=fields.word("name"),
        strategies=tuple(fields.texts("strategies")),
        needs_image=fields.flag("needs_image"),
        is_healthy=fields.flag("healthy"),
        detail=fields.text("detail"),
        capacity=parsing.capacity(fields.part("capacity")),
        in_use=parsing.capacity(fields.part("in_use")),
        waiting=fields.whole("waiting"),
    )


def token(fields: Fields) -> Token:
    """A token, without its secret."""
    return Token(
        id=TokenId(fields.word("id")),
        user=fields.word("user"),
        role=fields.choice("role", Role),
        note=fields.text("note"),
        created_at=fields.moment("created_at"),
        expires_at=fields.maybe_moment("expires_at"),
        revoked_at=fields.maybe_moment("revoked_at"),
        last_used_at=fields.maybe_moment("last_used_at"),
    )


def issued(fields: Fields) -> Issued:
    """A token at the one moment its secret is known."""
    return Issued(token=token(fields.part("token")), secret=fields.word("secret"))


def schedule(fields: Fields) -> Schedule:
    """A schedule."""
    return Schedule(
        id=ScheduleId(fields.word("id")),
        version=fields.whole("version"),
        benchmark=fields.text("benchmark"),
        cron=fields.word("cron"),
        time_zone=fields.word("time_zone"),
        overlap=fields.choice("overlap", Overlap),
        catch_up=fields.choice("catch_up", CatchUp),
        engine=fields.word("engine"),
        priority=fields.whole("priority"),
        descriptor_sha=fields.text("descriptor_sha"),
        submitter=fields.text("submitter"),
        created_at=fields.moment("created_at"),
        paused_at=fields.maybe_moment("paused_at"),
        next_at=fields.maybe_moment("next_at"),
        last_at=fields.maybe_moment("last_at"),
        last_run=fields.maybe_word("last_run"),
        last_note=fields.maybe_text("last_note") or "",
        fired=fields.whole("fired"),
    )


def schedule_event(fields: Fields) -> ScheduleEvent:
    """Something that happened to a schedule."""
    return ScheduleEvent(
        schedule_id=ScheduleId(fields.word("schedule")),
        number=fields.whole("number"),
        at=fields.moment("at"),
        kind=fields.choice("kind", EventKind),
        message=fields.text("message"),
        run_id=fields.maybe_word("run"),
    )
