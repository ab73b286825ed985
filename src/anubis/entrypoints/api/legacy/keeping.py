"""What is kept of a client's message: who sent it, and what the run itself does not keep."""

from __future__ import annotations

import json
from typing import TypedDict, cast

from anubis.domain.action import Action, ActionKind
from anubis.entrypoints.api.legacy.envelopes import CommandShape
from anubis.entrypoints.api.legacy.reading import SenderShape
from anubis.entrypoints.api.legacy.telling import Command


class KeptSubmission(TypedDict):
    """Of a submission: the document itself is kept with its run."""

    sender: SenderShape
    filename: str
    sha1: str
    verified: bool


class KeptCommand(TypedDict):
    """Of a command: also what became of it."""

    sender: SenderShape
    addressed: str
    command: str
    cascade: bool
    has_target: bool
    after: int


def to_text(kept: KeptSubmission | KeptCommand) -> str:
    """As it is stored."""
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def submission(action: Action) -> KeptSubmission:
    """What was kept of a submission. Nobody but us writes it."""
    assert action.kind is ActionKind.SUBMISSION, f"{action.id} is a {action.kind}"
    return cast("KeptSubmission", json.loads(action.envelope))


def command(action: Action) -> KeptCommand:
    """What was kept of a command."""
    assert action.kind is ActionKind.COMMAND, f"{action.id} is a {action.kind}"
    return cast("KeptCommand", json.loads(action.envelope))


def told(action: Action) -> Command:
    """A command, as its story is told."""
    kept = command(action)
    return Command(
        id=action.id,
        at=action.at,
        addressed=kept["addressed"],
        target=action.target,
        is_known=kept["command"] == CANCEL,
        has_target=kept["has_target"],
        after=kept["after"],
    )


def payload(action: Action) -> CommandShape:
    """A command, as it came."""
    kept = command(action)
    args: dict[str, str | bool] = {"target_action_id": action.target}
    if kept["cascade"]:
        args["cascade"] = True
    return CommandShape(command=kept["command"], args=dict(args))


CANCEL = "cancel"
"""The one command there is."""
