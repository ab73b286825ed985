"""Bring the code that was submitted beside a descriptor to where its run can read it.

Each run has a copy of its own, in the folder that its engine keeps of it: a program may change what
it was given without changing it for others, and the copy goes when the engine forgets the run.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

from anubis.domain import plan as plans
from anubis.domain.errors import UserError
from anubis.domain.plan import Plan
from anubis.domain.run import RunId
from anubis.ports.script_store import ScriptStore

NAME: Final = "scripts"
"""The folder's name within that of the run."""


class Scripts:
    """Unpacks archives below ``root``, which has a folder per run that somebody else removes."""

    def __init__(self, store: ScriptStore, root: Path) -> None:
        self._store = store
        self._root = root.absolute()

    def placed(self, run_id: RunId, plan: Plan) -> Plan:
        """The plan, now that it is known where the code of this run is."""
        return plans.filled(plan, {"scripts": str(self._folder(run_id))})

    async def bring(self, run_id: RunId, plan: Plan) -> None:
        """Unpack what the plan needs. Safe to repeat before the start of the run.

        Raises UserError if an archive is not there.
        """
        folder = self._folder(run_id)
        for name in plans.scripts(plan):
            await asyncio.to_thread(_make_anew, folder)
            await self._store.unpack(name, str(folder))

    def _folder(self, run_id: RunId) -> Path:
        return self._root / run_id / NAME


def _make_anew(folder: Path) -> None:
    """What an earlier attempt left may be half of it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)


class NoScripts:
    """For installations without a store of scripts."""

    def placed(self, run_id: RunId, plan: Plan) -> Plan:  # noqa: ARG002 - as ``Scripts`` has it
        """The plan as it is."""
        return plan

    async def bring(self, run_id: RunId, plan: Plan) -> None:  # noqa: ARG002
        """Raise UserError if the plan needs any."""
        for name in plans.scripts(plan):
            raise UserError(f"script archive {name} cannot be brought: no scripts are kept here")
