"""Descriptors become exactly the Kubernetes objects that lie beside this file.

After a change that is meant, ``REWRITE_GOLDEN=1 pytest tests/unit/engine_kubernetes`` writes them
anew; then read the difference.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.unit.engine_kubernetes import manifest_cases as cases

from anubis.adapters.engine.kubernetes.manifests.site import Site
from anubis.domain.errors import UserError
from anubis.domain.plan import Plan
from anubis.entrypoints.cli.rendering import manifests

GOLDEN = Path(__file__).parent / "golden"
WITH_OPERATOR = dataclasses.replace(cases.SITE, has_mpi_operator=True)
ADMINISTERED = dataclasses.replace(
    cases.SITE,
    datasets="pvc:shared",
    fetch_secret="s3",
    overlay={
        "metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
        "spec": {
            "tolerations": [{"key": "benchmarks", "operator": "Exists"}],
            "containers": [
                {
                    "name": "benchmark",
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                }
            ],
        },
    },
)
CASES: Mapping[str, tuple[Callable[[], Plan], Site]] = {
    **{
        name: (functools.partial(cases.descriptor_plan, path), cases.SITE)
        for name, path in cases.DESCRIPTORS.items()
    },
    "sample-mpi-operator": (
        functools.partial(cases.descriptor_plan, cases.DESCRIPTORS["sample-mpi"]),
        WITH_OPERATOR,
    ),
    "everything": (cases.everything, cases.SITE),
    "everything-administered": (cases.everything, ADMINISTERED),
    "requested": (cases.requested, cases.SITE),
}


def shown(made: Callable[[], Plan], site: Site) -> str:
    """The objects as people read them; or why there are none."""
    try:
        whole = cases.objects(made(), site).objects
    except UserError as error:
        return manifests.documents([{"obstacles": str(error).split("\n")}])
    return manifests.documents(whole)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_plan_becomes_the_objects_that_lie_beside_it(name: str) -> None:
    golden = GOLDEN / f"{name}.yaml"
    found = shown(*CASES[name])
    if os.environ.get("REWRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, "utf-8")
    assert found == golden.read_text("utf-8")


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(CASES)
