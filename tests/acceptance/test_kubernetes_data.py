"""Data of a run on Kubernetes: from a store that needs a key, into a volume that pods share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests import data_servers, kubernetes_engines, real_parts
from tests.cluster import control, layout
from tests.data_servers import S3Server

from . import clustered
from .clustered import ClusteredHome

pytestmark = [pytest.mark.acceptance, pytest.mark.cluster, pytest.mark.timeout(600)]

CLAIM, SECRET = "datasets", "object-store"

READS = """\
spec_version = "0.1.0"
[info]
description = "Reads what was fetched"
[env]
docker_image = "anubis-test/busybox:latest"
[[data.sources]]
src = "s3://private/train.csv"
path = "/data/train.csv"
[ml]
benchmark_code = "cat /data/train.csv"
"""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A home whose pods fetch from a store, into a folder of the node."""

    home: ClusteredHome
    store: S3Server
    volume: Path

    def read(self) -> str:
        """What a program reads."""
        (self.home.folder / "reads.toml").write_text(real_parts.with_images(READS))
        run_id = self.home.submit("reads.toml")
        run = self.home.ended(run_id)
        assert run["state"] == "SUCCEEDED", self.home.events(run_id)
        return self.home.ask("logs", run_id)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    real_parts.need_cluster()
    real_parts.need(control.can_kill(), "pods do not reach this machine at an address that we know")
    folder = tmp_path_factory.mktemp("store")
    with data_servers.s3_server(folder, layout.NODE_ADDRESS) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    clustered.need_our_image()
    control.load(real_parts.busybox())
    with clustered.home(tmp_path) as made:
        yield made


@pytest.fixture
def stored(home: ClusteredHome, store: S3Server, tmp_path: Path) -> Iterator[Stored]:
    volume = tmp_path / "volume"
    volume.mkdir()
    make_claim(home, volume)
    home.environment["ANUBIS_KUBERNETES_DATASETS"] = f"pvc:{CLAIM}"
    try:
        yield Stored(home=home, store=store, volume=volume)
    finally:
        kubernetes_engines.kubectl("delete", "persistentvolume", home.namespace, "--wait=false")


def make_claim(home: ClusteredHome, folder: Path) -> None:
    """A claim of all pods, on a folder of the node."""
    size = {"storage": "1Gi"}
    modes = ["ReadWriteMany"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": home.namespace},
        "spec": {
            "capacity": size,
            "accessModes": modes,
            "storageClassName": "",
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": home.namespace, "name": CLAIM},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": home.namespace},
        "spec": {
            "accessModes": modes,
            "storageClassName": "",
            "volumeName": home.namespace,
            "resources": {"requests": size},
        },
    }
    for one in (volume, claim):
        kubernetes_engines.kubectl("create", "--filename=-", text=json.dumps(one))


def give(stored: Stored, variables: Mapping[str, str]) -> None:
    """Make the Secret that administrators make, and name it."""
    given = [f"--from-literal={name}={text}" for name, text in variables.items() if name != "HOME"]
    stored.home.kubectl("create", "secret", "generic", SECRET, *given)
    stored.home.environment["ANUBIS_KUBERNETES_SECRET"] = SECRET


def test_what_needs_a_key_is_fetched_with_that_of_the_secret_and_kept_for_other_pods(
    stored: Stored,
) -> None:
    stored.store.put_private("private", "train.csv", b"1,2,3\n")
    give(stored, stored.store.environment)
    assert stored.read() == "1,2,3\n"
    [kept] = (stored.volume / "objects").iterdir()
    made = kept.stat().st_ctime_ns
    assert stored.read() == "1,2,3\n"
    assert [kept.stat().st_ctime_ns for kept in (stored.volume / "objects").iterdir()] == [made]


def test_without_the_key_the_run_says_what_it_may_not_read(stored: Stored) -> None:
    stored.store.put_private("private", "train.csv", b"1,2,3\n")
    give(stored, stored.store.anonymous)
    (stored.home.folder / "reads.toml").write_text(real_parts.with_images(READS))
    run_id = stored.home.submit("reads.toml")
    assert stored.home.ended(run_id)["state"] in ("ERROR", "FAILED")
    last = stored.home.events(run_id)[-1]
    assert "s3://private/train.csv" in last
    assert data_servers.SECRET not in last
