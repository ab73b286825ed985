"""Pods, Jobs and events as a real cluster told of them, for tests of where a unit stands.

Each file of ``recorded/`` is a moment of a situation that was brought about on a cluster of version
1.36 with Jobs like ours: what there was at the time ``at``. Fields that nobody reads are left out.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from anubis.adapters.engine.kubernetes import explaining, standing, viewing
from anubis.adapters.engine.kubernetes.explaining import Happening
from anubis.adapters.engine.kubernetes.standing import Seen, Standing
from anubis.domain.plan import Limits

FOLDER = Path(__file__).parent / "recorded"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
WORKLOAD = "anubis-0123-benchmark"


@functools.cache
def _content(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def raw(name: str) -> Any:
    """A copy that may be changed."""
    return copy.deepcopy(_content(name))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What there was, and when."""

    pods: Sequence[Any]
    workload: Any
    events: Sequence[Happening]
    at: datetime

    def stand(
        self,
        *,
        after: timedelta = timedelta(),
        limits: Limits | None = None,
        seen: Seen | None = None,
    ) -> Standing:
        """Where a unit stands of which there is this, so long after."""
        job = None if self.workload is None else standing.job_view(self.workload)
        pods = [standing.pod_view(pod) for pod in self.pods]
        before = seen or Seen(created_at=self.at - timedelta(seconds=5), workload=WORKLOAD)
        return standing.stand(pods, job, before, self.at + after, limits or Limits())

    def explained(self, **how: Any) -> Standing:
        """The same, with what the events say."""
        now = self.at + how.get("after", timedelta())
        return explaining.explained(self.stand(**how), self.events, now)


def moment(name: str) -> Moment:
    """What was recorded."""
    return moment_of(raw(name))


def moment_of(content: Any) -> Moment:
    """What is in a recording, or in one that was changed."""
    at = viewing.moment(content["at"])
    assert at is not None
    events = [explaining.happening(one) for one in content["events"]]
    return Moment(pods=content["pods"], workload=content["workload"], events=events, at=at)
