"""The environment of a run: what would have to be the same for its numbers to mean the same.

The first fingerprint asks interpreters and GPUs and may take a second; later ones read some
files. Whatever cannot be found out is said in its place, and never stops a run.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from anubis.adapters.engine.process import interpreters, machine, repositories
from anubis.adapters.engine.process.gpus import Gpus
from anubis.domain.document import Fingerprint
from anubis.domain.plan import Plan, Unit

_PRIVATE = ("stamp", "folders")


class Fingerprinter:
    """Describe the environment of plans; remembers what is costly to learn."""

    def __init__(self, cache: Path, gpus: Gpus) -> None:
        self._interpreters = interpreters.Interpreters(cache)
        self._gpus = gpus
        self._gpu_facts: list[dict[str, object]] | None = None
        self._last: tuple[object, object, str] | None = None

    async def take(self, plan: Plan) -> Fingerprint:
        """Now, for this plan."""
        unit = next(unit for unit in plan.units if unit.name == plan.deciding)
        return Fingerprint(machine=await self._machine(unit), moment=await self._moment(unit))

    async def _machine(self, unit: Unit) -> str:
        if self._gpu_facts is None:
            may_exist = self._gpus.may_exist
            self._gpu_facts = await asyncio.to_thread(self._gpus.describe) if may_exist else []
        interpreter = await self._interpreter(unit)
        governor = machine.governor()
        if self._last and self._last[0] is interpreter and self._last[1] == governor:
            return self._last[2]
        facts = machine.permanent_facts() | {"governor": governor, "gpus": self._gpu_facts}
        facts["python"] = interpreter and {
            name: value for name, value in interpreter.items() if name not in _PRIVATE
        }
        text = json.dumps(facts, sort_keys=True)
        self._last = (interpreter, governor, text)
        return text

    async def _interpreter(self, unit: Unit) -> dict[str, object] | None:
        environment = {**(unit.inherited or os.environ), **unit.environment}
        path = interpreters.interpreter_of(unit, environment)
        if path is None:
            return None
        known = self._interpreters.recall(path)
        return known or await asyncio.to_thread(self._interpreters.describe, path)

    async def _moment(self, unit: Unit) -> str:
        facts = machine.present_facts()
        folder = repositories.find_repository(unit.directory)
        facts["git"] = folder and await asyncio.to_thread(repositories.describe_repository, folder)
        return json.dumps(facts, sort_keys=True)
