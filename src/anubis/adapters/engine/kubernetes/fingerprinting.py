"""The environment of a pod, as far as it is known before a node is chosen: cluster and images."""

from __future__ import annotations

import contextlib
import json

from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable
from anubis.domain.plan import Plan


class Fingerprinter:
    """Describe the environment of plans; remembers what does not change."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, str] | None = None

    async def take(self, plan: Plan) -> Fingerprint:
        """Now, for this plan."""
        if self._known is None:
            with contextlib.suppress(EngineUnavailable):  # its start will wait for it, and say so
                version = await self._cluster.version()
                self._known = {
                    "version": version.version,
                    "platform": version.platform,
                    "namespace": self._cluster.namespace,
                }
        units = {
            unit.name: {
                "image": unit.image,
                "instance_type": unit.placement.instance_type,
                "zone": unit.placement.zone,
            }
            for unit in plan.units
        }
        facts = {"kubernetes": self._known, "units": units}
        return Fingerprint(machine=json.dumps(facts, sort_keys=True), moment="{}")
