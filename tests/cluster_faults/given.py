"""Runs on a real cluster to which something happens, and what came of them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from datetime import timedelta

from tests import kubernetes_engines, real_parts

from anubis.domain.observation import Observation, UnitEnded, UnitWaiting
from anubis.domain.plan import Limits, Placement, Plan, Resources
from anubis.domain.run import RunId
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import a_new_run, a_plan, end, watch

SECOND = timedelta(seconds=1)

TALKER = "echo here; i=0; while [ $i -lt 600 ]; do i=$((i+1)); sleep 0.1; done; echo done"
"""Says that it is here, and ends by itself after a minute."""

STUBBORN = f"trap '' TERM; {TALKER}"
"""Does not end when it is asked to."""


def shell(script: str, limits: Limits | None = None, **fields: object) -> Plan:
    """A plan of one shell program."""
    image = fields.pop("image", None) or real_parts.busybox()
    return a_plan("sh", "-c", script, limits=limits, image=image, **fields)


def with_memory(script: str, amount: int, limits: Limits | None = None) -> Plan:
    """The same, of a program that asks for memory."""
    return shell(script, limits, resources=Resources(memory_bytes=amount))


def with_gpus(count: int, limits: Limits) -> Plan:
    """The same, of one that asks for GPUs."""
    return shell("true", limits, resources=Resources(gpus=count))


def with_label(name: str, value: str, limits: Limits) -> Plan:
    """The same, of one that wants a node of its choice."""
    return shell("true", limits, placement=Placement(node_selector={name: value}))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One run of an engine in a namespace."""

    engine: Engine
    namespace: str
    run_id: RunId

    @property
    def selector(self) -> str:
        """Finds what is of this run."""
        return f"anubis.dev/run={self.run_id}"

    async def kubectl(self, *words: str, text: str | None = None) -> str:
        """What kubectl answers, in our namespace."""
        call = kubernetes_engines.kubectl
        return await asyncio.to_thread(call, *words, "-n", self.namespace, text=text)

    async def pod(self) -> str:
        """The name of its pod."""
        listed = await self.kubectl("get", "pods", "-l", self.selector, "-o", "json")
        return str(json.loads(listed)["items"][0]["metadata"]["name"])

    async def seen(self, seconds: float = 120) -> list[Observation]:
        """All that was seen of it, until its end, which comes in time."""
        async with asyncio.timeout(seconds):
            return await watch(self.engine, self.run_id)

    async def ended(self, seconds: float = 120) -> UnitEnded:
        """Its end, which comes in time."""
        return end(await self.seen(seconds))

    async def until_it_waits(self, seconds: float = 60) -> str:
        """What it says first that it waits for."""
        async with asyncio.timeout(seconds):
            async for observation in self.engine.observe(self.run_id):
                if isinstance(observation, UnitWaiting):
                    return observation.message
        raise AssertionError("it never waited")


async def begun(engine: Engine, namespace: str, plan: Plan) -> Case:
    """A run that was asked for."""
    case = Case(engine=engine, namespace=namespace, run_id=a_new_run())
    await engine.start(case.run_id, plan)
    return case


def waits(seen: Sequence[Observation]) -> list[str]:
    """What a unit said that it waits for."""
    return [one.message for one in seen if isinstance(one, UnitWaiting)]
