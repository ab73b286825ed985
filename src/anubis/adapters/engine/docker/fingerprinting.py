"""The environment of a container: the machine, the daemon, and the exact images."""

from __future__ import annotations

import asyncio
import json

from anubis.adapters.engine.docker import images
from anubis.adapters.engine.docker.daemon import Daemon
from anubis.adapters.engine.process import machine
from anubis.adapters.engine.process.gpus import Gpus
from anubis.domain.document import Fingerprint
from anubis.domain.plan import Plan

_FACTS = {
    "storage_driver": "Driver",
    "cgroup_driver": "CgroupDriver",
    "cgroup_version": "CgroupVersion",
    "runtime": "DefaultRuntime",
    "kernel": "KernelVersion",
    "os": "OperatingSystem",
    "security": "SecurityOptions",
}
"""Our word for what the daemon tells about itself."""


class Fingerprinter:
    """Describe the environment of plans; remembers what does not change."""

    def __init__(self, daemon: Daemon, gpus: Gpus) -> None:
        self._daemon = daemon
        self._gpus = gpus
        self._known: dict[str, object] | None = None

    async def take(self, plan: Plan) -> Fingerprint:
        """Now, for this plan."""
        facts = {**await self._permanent(), "governor": machine.governor()}
        facts["images"] = [await self._image(name) for name in images.names(plan)]
        return Fingerprint(
            machine=json.dumps(facts, sort_keys=True),
            moment=json.dumps(machine.present_facts(), sort_keys=True),
        )

    async def _permanent(self) -> dict[str, object]:
        if self._known is None:
            has_gpus = self._gpus.may_exist
            gpus = await asyncio.to_thread(self._gpus.describe) if has_gpus else []
            told = await self._daemon.facts()
            version = await self._daemon.version()
            daemon = {
                "version": version.version,
                "api": version.api,
                "is_podman": version.is_podman,
                **{ours: told.get(theirs) for ours, theirs in _FACTS.items()},
            }
            self._known = {**machine.permanent_facts(), "gpus": gpus, "docker": daemon}
        return self._known

    async def _image(self, name: str) -> dict[str, object]:
        """Which image it is exactly: a name may mean another one tomorrow."""
        found = await self._daemon.image(name)
        if found is None:
            return {"name": name}
        return {"name": name, "id": found.id, "digests": sorted(found.digests)}
