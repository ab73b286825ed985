"""What the HTTP service works with: the application of a home, and the stores of the service."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING

from anubis.bootstrap.local import LocalApplication
from anubis.ports.access_store import AccessStore
from anubis.ports.action_store import ActionStore
from anubis.ports.script_store import ScriptStore
from anubis.settings.model import Settings

if TYPE_CHECKING:
    from anubis.runtime.broadcasting import Broadcaster


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """One service, open. Every route works with this and nothing else."""

    application: LocalApplication
    access: AccessStore
    actions: ActionStore
    scripts: ScriptStore
    settings: Settings
    requires_tokens: bool  #: False: whoever reaches us on loopback may do everything
    broadcaster: Broadcaster  #: tells watchers that the store has news
    started_at: datetime
