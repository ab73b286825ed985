"""The same number of Jobs without us: what the cluster itself needs for them.

Plain Jobs on the same nodes on paper, with calls to the API (as many at once as our client makes),
and with one ``kubectl create`` after the other, as a person would write it in a shell.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.cluster import Cluster
from bench.kubernetes.paper_nodes import LABEL
from bench.kubernetes.space import Space

LOOK_SECONDS = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Bare:
    """Seconds since the first call."""

    jobs: int
    created_in: float
    ended_in: float
    removed_in: float


def job(space: Space, name: str) -> Mapping[str, object]:
    """One that does nothing on paper."""
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {LABEL: space.name},
        "tolerations": [{"key": LABEL, "operator": "Exists"}],
        "containers": [{"name": "program", "image": "paper/nothing:1", "command": ["true"]}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


async def measure(space: Space, cluster: Cluster, jobs: int) -> Bare:
    """With calls to the API."""
    names = [f"bare-{number}" for number in range(jobs)]
    began = time.monotonic()
    await asyncio.gather(*(cluster.create(job(space, name)) for name in names))
    created = time.monotonic() - began
    await _until(cluster, _are_complete)
    ended = time.monotonic() - began
    await asyncio.gather(*(cluster.delete(kinds.JOB, name) for name in names))
    await _until(cluster, _are_gone)
    removed = time.monotonic() - began
    return Bare(jobs=jobs, created_in=created, ended_in=ended, removed_in=removed)


def create_with_kubectl(space: Space, jobs: int) -> float:
    """Seconds for one call of kubectl after the other; they are deleted after that."""
    made = [json.dumps(job(space, f"one-{number}")) for number in range(jobs)]
    began = time.monotonic()
    for content in made:
        space.kubectl("create", "--filename=-", given=content)
    seconds = time.monotonic() - began
    space.kubectl("delete", "jobs", "--all", "--wait=false")
    while space.get("pods")["items"]:
        time.sleep(LOOK_SECONDS)
    return seconds


async def _until(
    cluster: Cluster, is_so: Callable[[Sequence[kinds.Found], Sequence[kinds.Found]], bool]
) -> None:
    """Ask for all Jobs and pods until they are so."""
    while True:
        jobs, pods = [(await cluster.list(kind)).items for kind in (kinds.JOB, kinds.POD)]
        if is_so(jobs, pods):
            return
        await asyncio.sleep(LOOK_SECONDS)


def _are_complete(jobs: Sequence[kinds.Found], _pods: Sequence[kinds.Found]) -> bool:
    return all(
        any(one["type"] == "Complete" for one in job["status"].get("conditions") or ())
        for job in jobs
    )


def _are_gone(jobs: Sequence[kinds.Found], pods: Sequence[kinds.Found]) -> bool:
    return not jobs and not pods
