"""Take a submission of an original client: as a run, or as a schedule if its descriptor has one."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import tomllib
from typing import Final

from anubis.bootstrap.application import Submission
from anubis.bootstrap.service import Service
from anubis.bootstrap.surroundings import service_environment
from anubis.domain.action import Action, ActionId, ActionKind
from anubis.domain.descriptor import SINGLE_RUN
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.entrypoints.api.legacy import keeping, reading
from anubis.entrypoints.api.legacy.keeping import KeptSubmission
from anubis.entrypoints.api.legacy.reading import Malformed, Submitted

_SCHEDULING: Final = "info.scheduling"
_STRANGE: Final = re.compile(r"[^A-Za-z0-9._@+-]")
_LONGEST_USER: Final = 64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """What became of a submission."""

    action_id: str
    is_schedule: bool


def user(name: str) -> str:
    """Whom a submission belongs to where no tokens say so: as it claims, in letters we take."""
    return _STRANGE.sub("_", name)[:_LONGEST_USER] or "local"


async def accept(service: Service, submitted: Submitted, submitter: str) -> Accepted:
    """Store what was submitted. Raises UserError for what cannot be run here."""
    document = Document(
        name=submitted.filename or "descriptor.toml",
        directory="",  # it is on the client's machine
        content=reading.once(submitted.content),
    )
    submission = Submission(
        document=document,
        submitter=submitter,
        environment=service_environment(os.environ),
    )
    try:
        accepted = await _store(service, submission)
    except DescriptorInvalid as error:
        raise _explained(error, document) from None
    action = Action(
        id=ActionId(accepted.action_id),
        kind=ActionKind.SUBMISSION,
        client_id=submitted.client_id,
        at=service.application.clock.now(),
        envelope=keeping.to_text(_kept(submitted, document)),
    )
    await service.actions.add(action)
    return accepted


async def _store(service: Service, submission: Submission) -> Accepted:
    application = service.application
    descriptor = (await application.parsed(submission.document)).descriptor
    if descriptor.info.scheduling == SINGLE_RUN:
        run = (await application.submit(submission)).run
        return Accepted(action_id=run.id, is_schedule=False)
    schedule = (await application.schedules.add(submission)).schedule
    return Accepted(action_id=schedule.id, is_schedule=True)


def _kept(submitted: Submitted, document: Document) -> KeptSubmission:
    sha1 = hashlib.sha1(submitted.content, usedforsecurity=False).hexdigest()
    return KeptSubmission(
        sender=submitted.sender,
        filename=document.name,
        sha1=submitted.sha1,
        verified=submitted.sha1.lower() == sha1,
    )


def _explained(error: DescriptorInvalid, document: Document) -> Malformed:
    """All that is wrong with a descriptor, with the words the original has for schedules."""
    lines = [str(problem) for problem in error.problems]
    if any(problem.field == _SCHEDULING for problem in error.problems):
        lines.insert(0, f"INVALID CRONTAB ENTRY: {_scheduling(document)}")
    return Malformed("\n".join(lines))


def _scheduling(document: Document) -> object:
    """What stands there, as far as that can be read."""
    try:
        return tomllib.loads(document.content.decode("utf-8-sig"))["info"]["scheduling"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
