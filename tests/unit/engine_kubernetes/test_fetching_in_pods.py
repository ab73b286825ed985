"""The fetcher in pods of a real cluster, with a cache that all pods of the node share."""

from __future__ import annotations

import hashlib
import json
import pathlib
import secrets
import shutil
from collections.abc import Iterator

import pytest
from tests import counted_downloads, docker_images, kubectl, own_image, real_parts
from tests.cluster import control
from tests.counted_downloads import CONTENT, Server

from anubis.domain.dataset import Reference, checksum

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with counted_downloads.server() as made:
        yield made


@pytest.fixture(scope="module")
def space() -> Iterator[kubectl.Space]:
    real_parts.need_docker()
    real_parts.need(kubectl.KUBECONFIG.is_file(), "there is no test cluster: make cluster")
    real_parts.need(control.can_kill(), "the cluster's node is not this machine")
    own_image.loaded()
    control.load(docker_images.busybox())
    with kubectl.space("fetching") as made:
        yield made


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder of the node."""
    folder = tmp_path / "datasets"
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def pod(node: pathlib.Path, reference: Reference) -> dict[str, object]:
    """A pod that reads a dataset, as the engine would write it."""
    order = {
        "run": secrets.token_hex(8),
        "datasets": "/var/lib/anubis-datasets",
        "fetches": [
            {
                "uri": reference.uri,
                "checksum": str(reference.checksum or ""),
                "unpack": reference.unpack,
                "link": reference.key,
            }
        ],
        "scripts": {},
        "scripts_target": "/bai/scripts",
        "hosts": [],
        "seconds": 60,
    }
    ours = {"image": own_image.NAME, "imagePullPolicy": "IfNotPresent"}
    program = {"image": docker_images.busybox(), "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{secrets.token_hex(4)}"},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "volumes": [
                {"name": "datasets", "hostPath": {"path": str(node), "type": "DirectoryOrCreate"}}
            ],
            "initContainers": [
                {
                    "name": "fetch",
                    **ours,
                    "command": ["python3", "-m", "anubis.entrypoints.pod", "fetch"],
                    "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
                    "env": [{"name": "ANUBIS_FETCH", "value": json.dumps(order)}],
                    "volumeMounts": [{"name": "datasets", "mountPath": "/var/lib/anubis-datasets"}],
                }
            ],
            "containers": [
                {
                    "name": "benchmark",
                    **program,
                    "command": ["sha256sum", "/data/train.csv"],
                    "securityContext": {"runAsUser": 1000},
                    "volumeMounts": [
                        {
                            "name": "datasets",
                            "mountPath": "/data/train.csv",
                            "subPath": f"mounts/{reference.key}",
                            "readOnly": True,
                        }
                    ],
                }
            ],
        },
    }


def ended(space: kubectl.Space, name: str) -> str:
    def look() -> str | None:
        phase = space.get("pod", name)["status"].get("phase")
        return str(phase) if phase in ("Succeeded", "Failed") else None

    return kubectl.until(look, f"{name} has ended")


def test_several_pods_that_want_the_same_fetch_it_once_and_any_user_can_read_it(
    space: kubectl.Space, server: Server, node: pathlib.Path
) -> None:
    pods = [pod(node, Reference(uri=server.uri)) for _ in range(3)]
    listed = {"apiVersion": "v1", "kind": "List", "items": pods}
    space.ask("create", "-f", "-", stdin=json.dumps(listed))
    for one in pods:
        name = one["metadata"]["name"]  # type: ignore[index]
        assert ended(space, name) == "Succeeded"
        assert hashlib.sha256(CONTENT).hexdigest() in space.ask("logs", name, "-c", "benchmark")
    assert server.sent == 1
    assert len(list((node / "objects").iterdir())) == 1


def test_a_wrong_checksum_is_the_last_word_of_the_pod(
    space: kubectl.Space, server: Server, node: pathlib.Path
) -> None:
    reference = Reference(uri=server.uri, checksum=checksum("sha256:" + "0" * 64))
    wrong = pod(node, reference)
    name = wrong["metadata"]["name"]  # type: ignore[index]
    space.ask("create", "-f", "-", stdin=json.dumps(wrong))
    assert ended(space, name) == "Failed"
    [fetch] = space.get("pod", name)["status"]["initContainerStatuses"]
    told = json.loads(fetch["state"]["terminated"]["message"])
    assert told["cause"] == "data_invalid"
    assert hashlib.sha256(CONTENT).hexdigest() in told["message"]
