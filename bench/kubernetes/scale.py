"""Hundreds of runs at once on nodes on paper: what the service and the API server pay for each."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Sequence

from anubis.adapters.engine.kubernetes.cluster import Cluster
from bench.kubernetes import bare, campaign
from bench.kubernetes.bare import Bare
from bench.kubernetes.campaign import Campaign, Figures
from bench.kubernetes.paper_nodes import PODS, paper_nodes
from bench.kubernetes.space import Space

KUBECTL_JOBS = 100
SPARE = 10  #: slots; nothing waits for room on the engine


@dataclasses.dataclass(slots=True)
class Results:
    """Of all campaigns, smallest first; of plain Jobs; and kubectl's Jobs per second."""

    ours: list[Figures] = dataclasses.field(default_factory=list)
    bare: list[Bare] = dataclasses.field(default_factory=list)
    kubectl_rate: float = 0.0


def measure(space: Space, sizes: Sequence[int]) -> Results:
    """Each size with a service of its own: none has seen the runs of another."""
    with paper_nodes(space, math.ceil(2 * max(sizes) / PODS)):
        return asyncio.run(_measure(space, sorted(sizes)))


async def _measure(space: Space, sizes: Sequence[int]) -> Results:
    results = Results()
    cluster = Cluster(space.access)
    try:
        for runs in sizes:
            results.bare.append(await bare.measure(space, cluster, runs))
            with campaign.service(space, runs + SPARE) as process:
                found = await Campaign(space, process, cluster).wage(runs)
            results.ours.append(found)
            print(f"  {runs} runs: {_states(found)}", flush=True)
        seconds = await asyncio.to_thread(bare.create_with_kubectl, space, KUBECTL_JOBS)
        results.kubectl_rate = KUBECTL_JOBS / seconds
    finally:
        await cluster.close()
    return results


def _states(found: Figures) -> str:
    return ", ".join(f"{state} {number}" for state, number in sorted(found.states.items()))


def report(results: Results) -> None:
    """Print what each size cost, what a run cost, and how that grows."""
    _report_rates(results)
    _report_costs(results.ours)
    _report_calls(results.ours)


def _report_rates(results: Results) -> None:
    print("\nSeconds since the first of all, and plain Jobs by calls to the API on the same nodes")
    head = ("runs", "accepted/s", "Jobs/s", "ended", "removed")
    peers = ("bare Jobs/s", "ended", "removed", "x ended", "x removed")
    print("".join(f"{one:>12}" for one in (*head, *peers)))
    for ours, peer in zip(results.ours, results.bare, strict=True):
        figures = (
            ours.runs / ours.accepted_in,
            ours.runs / ours.created_in,
            ours.ended_in,
            ours.removed_in,
            peer.jobs / peer.created_in,
            peer.ended_in,
            peer.removed_in,
        )
        ratios = (ours.ended_in / peer.ended_in, ours.removed_in / peer.removed_in)
        print(
            f"{ours.runs:>12}"
            + "".join(f"{one:>12.1f}" for one in figures)
            + "".join(f"{one:>12.2f}" for one in ratios)
        )
    print(f"one kubectl create after the other: {results.kubectl_rate:.1f} Jobs/s")


def _report_costs(found: Sequence[Figures]) -> None:
    print("\nThe service, for each run")
    head = ("runs", "CPU ms", "calls", "memory KB", "idle MB", "peak MB")
    print("".join(f"{one:>12}" for one in head))
    for one in found:
        memory = (one.peak_bytes - one.idle_bytes) / one.runs / 1e3
        figures = (
            one.cpu_seconds / one.runs * 1e3,
            one.calls.total() / one.runs,
            memory,
            one.idle_bytes / 1e6,
            one.peak_bytes / 1e6,
        )
        print(f"{one.runs:>12}" + "".join(f"{figure:>12.1f}" for figure in figures))
    small, large = found[0], found[-1]
    cpu = (large.cpu_seconds / large.runs) / (small.cpu_seconds / small.runs)
    calls = (large.calls.total() / large.runs) / (small.calls.total() / small.runs)
    print(
        f"{large.runs} runs against {small.runs}, for each run: CPU {cpu:.2f}x, calls {calls:.2f}x"
        " (1: the cost of a run does not depend on how many there are)"
    )


def _report_calls(found: Sequence[Figures]) -> None:
    print("\nCalls of the service to the API server, for each run")
    print(f"{'':<28}" + "".join(f"{one.runs:>8}" for one in found))
    known = sorted({what for one in found for what in one.calls}, key=lambda one: one[::-1])
    for verb, kind in known:
        shares = (one.calls[verb, kind] / one.runs for one in found)
        print(f"{verb + ' ' + kind:<28}" + "".join(f"{share:>8.2f}" for share in shares))
