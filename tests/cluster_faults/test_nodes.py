"""A node dies under a run, for real. The run ends as what it is, and others do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests import kubernetes_engines, real_parts
from tests.cluster import control, layout
from tests.cluster_faults.given import SECOND, TALKER, Case, begun, shell

from anubis.adapters.engine.kubernetes import removing, standing
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.domain.errors import NotPossible
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits, Placement, Plan
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import end, output, until_it_speaks

pytestmark = pytest.mark.cluster(alone=True)

GONE_AT_ONCE: Manifest = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 1,
}
"""Clusters wait five minutes for a node that they no longer hear of."""

SILENT = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
"""What the cluster says of a node after 50 seconds of silence; that we say it ourselves saves them.
All that follows from it is the cluster's own doing."""

SHORT_TALKER = "echo here; sleep 15; echo done"

IMPATIENT = dataclasses.replace(
    kubernetes_engines.TERMS, overlay={"spec": {"tolerations": [GONE_AT_ONCE]}}
)


@pytest.fixture
def second() -> Iterator[str]:
    with real_parts.second_node(kubernetes_engines.OUR_IMAGE, real_parts.busybox()) as name:
        yield name


@pytest.fixture
async def impatient(second: str, tmp_path: Path, namespace: str) -> AsyncIterator[Engine]:
    async with kubernetes_engines.opened(tmp_path, namespace, IMPATIENT) as found:
        yield found


def _on(node: str, script: str) -> Plan:
    placement = Placement(node_selector={"kubernetes.io/hostname": node})
    return shell(script, Limits(grace=SECOND), placement=placement)


async def test_a_run_whose_node_dies_is_told_so_and_removed_and_one_elsewhere_goes_on(
    impatient: Engine, namespace: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((standing, "LEAVING"), (removing, "SILENT_NODE")):
        monkeypatch.setattr(module, name, 2 * SECOND)
    monkeypatch.setattr(removing, "PATIENCE_SECONDS", 2.0)
    lost = await begun(impatient, namespace, _on(second, TALKER))
    safe = await begun(impatient, namespace, _on(layout.FIRST.name, SHORT_TALKER))
    for case in (lost, safe):
        await until_it_speaks(impatient, case.run_id)
    await asyncio.to_thread(control.kill_second_node)
    await lost.kubectl("patch", "node", second, "--subresource=status", f"--patch={SILENT}")
    ended, seen = await asyncio.gather(lost.ended(), safe.seen())
    assert ended.cause is EndCause.LOST
    assert ended.message.startswith(f"node {second} no longer answers")
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 0)
    assert output(seen) == b"here\ndone\n"
    await _removed(lost)


async def _removed(case: Case) -> None:
    """As the runtime does: whoever asks and hears that it takes time asks again."""
    async with asyncio.timeout(60):
        while await case.engine.started(case.run_id):
            with contextlib.suppress(NotPossible):
                await case.engine.remove(case.run_id)
