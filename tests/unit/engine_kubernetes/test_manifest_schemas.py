"""What we tell Kubernetes is what the official schemas say it understands."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.engine_kubernetes import official_schemas

from anubis.adapters.engine.kubernetes.manifests import cron_job
from anubis.domain.schedule import CatchUp, Overlap

GOLDEN = Path(__file__).parent / "golden"
OBJECTS = {
    f"{path.stem}: {one['kind']} {one['metadata']['name']}": one
    for path in sorted(GOLDEN.rglob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text("utf-8"))
    if "obstacles" not in one
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_as_the_official_schema_wants_it(name: str) -> None:
    assert official_schemas.complaint(OBJECTS[name]) == ""


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("catch_up", [CatchUp.LAST, CatchUp.NONE])
def test_an_exported_cronjob_is_as_the_official_schema_wants_it(
    overlap: Overlap, catch_up: CatchUp
) -> None:
    export = cron_job.Export(
        benchmark="train",
        content="spec_version = '0.1.0'",
        cron="@daily",
        time_zone="Europe/Berlin",
        overlap=overlap,
        catch_up=catch_up,
        grace=timedelta(seconds=10),
        endpoint="https://bench.example",
        token_secret="token",
        image="anubis:test",
        namespace="team",
    )
    assert [official_schemas.complaint(one) for one in cron_job.objects(export)] == ["", ""]


@pytest.mark.parametrize("kind", ["Job", "MPIJob"])
def test_a_field_that_the_schema_does_not_know_would_be_found(kind: str) -> None:
    made: dict[str, Any] = next(one for one in OBJECTS.values() if one["kind"] == kind)
    assert "backofLimit" in official_schemas.complaint(
        {**made, "spec": {**made["spec"], "backofLimit": 0}}
    )
