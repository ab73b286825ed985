"""The second node of the test cluster is another machine, and goes without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import kubectl, real_parts
from tests.cluster import calling, control, enclosure, layout, locking, second_node
from tests.cluster.layout import ClusterTrouble, Layout
from tests.kubectl import Space

ROOT = Path(__file__).parents[2]
KEPT = ("state", "log")
"""Folders in which it leaves something on purpose: images, and what its parts said."""

CRASHING = """
import os, signal
from tests.cluster import layout, second_node
second_node.up_for_us(layout.layout())
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def space() -> Iterator[Space]:
    with kubectl.space("house") as made:
        yield made


def traces() -> list[str]:
    """What it has on this machine and in the cluster."""
    place = layout.layout()
    told = [*calling.call("ip", "-oneline", "link").splitlines()]
    told += calling.call("ip", "route").splitlines()
    found = [line for line in told if enclosure.CABLE in line or layout.SECOND.address in line]
    found += [str(one) for one in place.root.glob("*/node2") if one.parent.name not in KEPT]
    group = layout.SECOND.control_group
    found += [str(one) for one in Path("/sys/fs/cgroup").glob(f"**/{group}")]
    found += [words for words in command_lines() if "/node2/" in words]
    named = ("get", "node", layout.SECOND.name, "--ignore-not-found", "-o", "name")
    return [*found, *calling.kubectl(place, *named).split()]


def command_lines() -> Iterator[str]:
    """Of all processes."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it is gone
            yield path.read_text(errors="replace").replace("\0", " ")


def a_server(name: str, node: str, image: str) -> str:
    """A pod that says who it is, and sees the output of all pods of its node."""
    serve = f"echo I am {name} >/tmp/index.html; exec httpd -f -p 8080 -h /tmp"
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", serve],
        "volumeMounts": [{"name": "pods", "mountPath": "/pods"}],
    }
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
        "volumes": [{"name": "pods", "hostPath": {"path": "/var/log/pods"}}],
    }
    metadata = {"name": name, "labels": {"name": name}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def answer(space: Space, asking: str, asked: str, field: str) -> str:
    """What a pod hears from another, at its own address or that of its Service."""
    kind, _, path = field.partition(" ")
    address = space.ask("get", kind, asked, f"--output=jsonpath={path}")
    script = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {address} 8080 | tail -n 1"
    return space.ask("exec", asking, "--", "sh", "-c", script).strip()


@pytest.mark.cluster(alone=True)
def test_pods_of_both_nodes_reach_each_other_and_have_other_folders(space: Space) -> None:
    image = real_parts.busybox()
    control.load(image)
    with real_parts.second_node(image) as second:
        for name, node in (("one", layout.FIRST.name), ("two", second)):
            space.ask("create", "--filename=-", stdin=a_server(name, node, image))
            space.ask("expose", "pod", name, "--port=8080")
        space.ask("wait", "--for=condition=Ready", "--timeout=120s", "pod/one", "pod/two")

        for asking, asked in (("one", "two"), ("two", "one")):
            for field in ("pod {.status.podIP}", "service {.spec.clusterIP}"):
                assert answer(space, asking, asked, field) == f"I am {asked}"
        seen = {name: space.ask("exec", name, "--", "ls", "/pods") for name in ("one", "two")}
        assert f"{space.name}_one_" in seen["one"]
        assert f"{space.name}_one_" not in seen["two"]
        assert f"{space.name}_two_" in seen["two"]

    assert traces() == []


@pytest.mark.cluster(alone=True)
def test_a_second_node_of_a_test_that_was_killed_is_gone_before_the_next() -> None:
    real_parts.need(os.geteuid() == 0, "a second node needs root")
    subprocess.run([sys.executable, "-c", CRASHING], cwd=ROOT)
    assert traces() != []

    control.heal()

    assert traces() == []


@pytest.mark.cluster(alone=True)
def test_a_second_node_that_lost_a_part_is_ended_by_the_command_as_well() -> None:
    real_parts.need(os.geteuid() == 0, "a second node needs root")
    command = [sys.executable, "-m", "tests.cluster", "second-node"]
    subprocess.run([*command, "up"], cwd=ROOT, check=True)
    assert second_node.is_whole(layout.layout())
    control.kill_second_node()

    for _ in range(2):  # also when it is gone
        subprocess.run([*command, "down"], cwd=ROOT, check=True)
        assert traces() == []


def test_a_second_node_needs_a_first(tmp_path: Path) -> None:
    place = Layout(root=tmp_path / secrets.token_hex(4))
    place.make_folders()
    with locking.changing(place), pytest.raises(ClusterTrouble, match="make cluster"):
        second_node.up(place)
    second_node.down(place)
