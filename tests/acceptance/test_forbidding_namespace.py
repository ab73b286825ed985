"""A namespace whose rules forbid our pods: what a user is told, before a run and by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import clustered
from .clustered import ClusteredHome

pytestmark = pytest.mark.cluster

RULE = "pod-security.kubernetes.io/enforce"
SOON = '[limits]\ncapacity = "20s"\n'


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    clustered.need_our_image()
    with clustered.home(tmp_path) as made:
        made.kubectl("label", "namespace", made.namespace, f"{RULE}=baseline")
        yield made


def test_rules_that_forbid_our_pods_are_named_with_what_to_do(home: ClusteredHome) -> None:
    doctor = " ".join(home.call("doctor").stdout.decode().split())
    assert "violates PodSecurity" in doctor
    assert f"label the namespace {RULE}=privileged" in doctor
    (home.folder / "descriptor.toml").write_text(
        f'{clustered.HEAD}[env]\ndocker_image = "any:1"\n[ml]\nbenchmark_code = "true"\n{SOON}'
    )
    run = home.ended(home.submit("descriptor.toml"))
    assert run["state"] == "FAILED"
    assert f"label the namespace {RULE}=privileged" in run["outcome"]["reason"], run
    home.kubectl("label", "--overwrite", "namespace", home.namespace, f"{RULE}=privileged")
    assert "violates" not in home.call("doctor").stdout.decode()
