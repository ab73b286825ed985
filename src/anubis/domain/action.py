"""What a client of the original wire sent: a submission or a command, with its envelope."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime
from typing import NewType

ActionId = NewType("ActionId", str)
"""For a submission, the id of its run or schedule; a command has an id of its own."""


class ActionKind(enum.StrEnum):
    """What was sent."""

    SUBMISSION = "submission"
    COMMAND = "command"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """One message of an original client, kept so that its events can be told in its words."""

    id: ActionId
    kind: ActionKind
    client_id: str
    at: datetime
    target: str = ""  #: of a command: the run or schedule it is about
    envelope: str  #: the message as JSON text, without what the run itself keeps
