"""Bring the images of a plan, as the policy says, and tell how far it is."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from anubis.adapters.engine.docker import credentials
from anubis.adapters.engine.docker.daemon import Daemon, Refused
from anubis.domain.dataset import Progress, Report
from anubis.domain.errors import ImageUnavailable
from anubis.domain.plan import Plan

ALWAYS, MISSING, NEVER = "always", "missing", "never"


def names(plan: Plan) -> tuple[str, ...]:
    """The images that the units need, each once."""
    return tuple(dict.fromkeys(unit.image for unit in plan.units if unit.image))


async def bring(daemon: Daemon, plan: Plan, policy: str, report: Report) -> None:
    """Have every image of a plan here. Raises ImageUnavailable."""
    for name in names(plan):
        if policy != ALWAYS and await daemon.image(name) is not None:
            continue
        if policy == NEVER:
            raise ImageUnavailable(
                f"the image {name} is not on this machine, and the pull policy is {NEVER}; "
                f"'docker pull {name}' brings it, ANUBIS_PULL={MISSING} lets Anubis do so"
            )
        await _pull(daemon, name, report)


async def _pull(daemon: Daemon, name: str, report: Report) -> None:
    layers = Layers()
    report(Progress(uri=name, done_bytes=0, total_bytes=None))
    messages = daemon.pull(name, await credentials.find(name))
    try:
        async with contextlib.aclosing(messages):
            async for message in messages:
                if layers.note(message):
                    report(Progress(uri=name, done_bytes=layers.done, total_bytes=layers.total))
    except Refused as error:
        raise ImageUnavailable(f"the image {name} cannot be pulled: {error}") from error


class Layers:
    """What of an image has come, over all its layers."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}

    def note(self, message: Mapping[str, Any]) -> bool:
        """Take in a message of the daemon; whether it brought news of bytes."""
        layer, status = str(message.get("id", "")), message.get("status")
        detail = message.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._total[layer] = int(detail["total"])
            self._done[layer] = int(detail.get("current", 0))
            return True
        if status in ("Download complete", "Pull complete") and layer in self._total:
            self._done[layer] = self._total[layer]
            return True
        return False

    @property
    def done(self) -> int:
        """Bytes that have come."""
        return sum(self._done.values())

    @property
    def total(self) -> int | None:
        """Bytes of all layers that the daemon has begun with; it may grow."""
        return sum(self._total.values()) or None
