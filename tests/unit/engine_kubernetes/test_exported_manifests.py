"""A schedule that is exported becomes exactly the objects that lie beside this file.

After a change that is meant, ``REWRITE_GOLDEN=1`` writes them anew; then read the difference.
"""

from __future__ import annotations

import base64
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from anubis.adapters.engine.kubernetes.manifests import cron_job
from anubis.domain.schedule import CatchUp, Overlap
from anubis.entrypoints.cli.rendering import manifests

GOLDEN = Path(__file__).parent / "golden" / "exported"
CODE: Final = cron_job.Code(name=f"{'5e' * 32}.tar", content=b"an archive\0\xff")
CODES = {"cron-job": None, "cron-job-with-code": CODE}


def export(code: cron_job.Code | None) -> cron_job.Export:
    return cron_job.Export(
        benchmark="Nightly train",
        content='spec_version = "0.1.0"\ninfo.scheduling = "0 3 * * 7"\n',
        code=code,
        cron="0 3 * * 7",
        time_zone="Europe/Berlin",
        overlap=Overlap.SKIP,
        catch_up=CatchUp.NONE,
        grace=timedelta(seconds=10),
        endpoint="https://bench.example",
        token_secret="bench-token",
        image="anubis:test",
        namespace="team",
    )


@pytest.mark.parametrize("name", CODES)
def test_an_exported_schedule_becomes_the_objects_that_lie_beside_it(name: str) -> None:
    golden = GOLDEN / f"{name}.yaml"
    found = manifests.documents(cron_job.objects(export(CODES[name])))
    if os.environ.get("REWRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, "utf-8")
    assert found == golden.read_text("utf-8")


def test_the_pod_finds_the_code_where_its_command_says() -> None:
    kept, made = (dict[str, Any](one) for one in cron_job.objects(export(CODE)))
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    folder = container["volumeMounts"][0]["mountPath"]
    *_, descriptor, option, code = container["command"]
    assert (descriptor, option) == (f"{folder}/{cron_job.FILE}", "--script")
    [(key, text)] = kept["binaryData"].items()
    assert (code, base64.b64decode(text)) == (f"{folder}/{key}", CODE.content)
    assert pod["volumes"][0]["configMap"]["name"] == kept["metadata"]["name"]


def test_descriptor_and_code_share_the_room_of_a_config_map() -> None:
    assert cron_job.room(b"x" * 1000) == cron_job.MOST - 1000
    assert cron_job.room(b"x" * (cron_job.MOST + 1)) == 0
