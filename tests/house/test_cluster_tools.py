"""What the tools of the test cluster promise, without a cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import real_parts
from tests.cluster import (
    building,
    enclosure,
    images,
    keys,
    lifecycle,
    locking,
    machine,
    parts,
    processes,
)
from tests.cluster.layout import FIRST, SECOND, ClusterTrouble, Layout

NODES = (FIRST, SECOND)
OWN_FOLDERS = ("config", "run", "state", "log", "socket")


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    made = Layout(root=tmp_path / "cluster")
    made.make_folders()
    return made


def test_a_part_outlives_who_started_it_and_is_found_again(place: Layout) -> None:
    processes.start(place, "sleeper", ["sleep", "600"])
    try:
        found = processes.find(place, "sleeper")

        assert found is not None
        assert _parent(found.pid) != os.getpid()
    finally:
        assert processes.stop(place, "sleeper")
    assert processes.find(place, "sleeper") is None
    assert not processes.stop(place, "sleeper")


@pytest.mark.parametrize("change", [{"began": 1}, {"boot": "another"}])
def test_a_process_with_the_number_of_an_earlier_part_is_left_alone(
    place: Layout, change: dict[str, object]
) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        kept = {"pid": other.pid, "began": _began(other.pid), "boot": processes.boot()}
        (place.run / "part.process").write_text(json.dumps(kept))
        assert processes.find(place, "part") is not None

        (place.run / "part.process").write_text(json.dumps({**kept, **change}))
        assert not processes.stop(place, "part")

        assert other.poll() is None
        other.kill()


def test_a_part_has_not_ended_while_one_of_its_threads_lives(place: Layout) -> None:
    """As after a kill: its ports are taken until the last thread is gone."""
    leaving = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=[600]).start();"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    processes.start(place, "leaving", [sys.executable, "-c", leaving])
    found = processes.find(place, "leaving")
    try:
        assert found is not None
        while _state(found.pid) != "Z":
            pass

        assert found.lives
    finally:
        processes.kill(place, "leaving")
    assert not found.lives


def test_a_part_that_cannot_live_is_told_with_its_last_words(place: Layout) -> None:
    part = parts.Part(
        name="failing",
        command=lambda _: ["sh", "-c", "echo no such flag >&2; exit 2"],
        answers=lambda _: False,
    )
    parts.start(place, part)

    with pytest.raises(ClusterTrouble, match=r"failing has ended:\nno such flag"):
        parts.wait(place, part)


def test_an_unknown_part_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(ClusterTrouble, match="kube-apiserver"):
        parts.find("kublet")


def test_who_wants_to_be_alone_waits_for_all_others_but_not_for_those_that_come_later(
    place: Layout,
) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def be_alone() -> None:
        waiting.set()
        with locking.alone(place):
            order.append("alone")

    def share() -> None:
        with locking.sharing(place):
            order.append("later")

    threads = [threading.Thread(target=be_alone), threading.Thread(target=share)]
    with locking.sharing(place), locking.sharing(place):
        threads[0].start()
        waiting.wait()
        while _can_pass(place):
            pass
        threads[1].start()
        order.append("first")
    for thread in threads:
        thread.join()

    assert order == ["first", "alone", "later"]


@pytest.mark.parametrize("component", building.ALL, ids=lambda component: component.name)
def test_every_component_names_its_version_and_hashes(component: building.Component) -> None:
    sums = (component.folder / "go.sum").read_text()

    assert f"{component.module} {component.version} h1:" in sums


def test_a_component_is_built_again_only_if_it_has_changed(
    place: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    monkeypatch.setattr(building, "need_go", lambda: None)
    monkeypatch.setattr(building, "_go", _pretending(built))

    building.build(place, [building.ETCD, building.HELM])
    building.build(place, [building.ETCD, building.HELM])
    (place.bin / ".helm").write_text("of an earlier version")
    building.build(place, [building.ETCD, building.HELM])

    assert built == ["etcd", "helm", "helm"]


def test_the_same_programs_give_the_same_image(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")

    for name in ("one.tar", "two.tar"):
        images.pack(tmp_path / name, "docker.io/anubis-test/one:1", {"program": program})

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_keys_are_readable_by_nobody_else_and_made_once(place: Layout) -> None:
    real_parts.need(shutil.which("openssl"), "openssl is not installed")
    keys.make(place)
    first = (place.keys / "ca.key").read_bytes()
    keys.make(place)

    assert (place.keys / "ca.key").read_bytes() == first
    assert place.keys.stat().st_mode & 0o077 == 0
    assert place.kubeconfig.stat().st_mode & 0o077 == 0


def test_who_starts_a_cluster_that_runs_is_told_how_it_is_reached(
    place: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lifecycle, "is_whole", lambda _: True)
    assert not lifecycle.up(place)
    said = capsys.readouterr()
    assert f"a cluster is up already: {place.kubeconfig}" in said.out + said.err


def test_a_second_node_ends_with_its_cluster(
    place: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = place.of(SECOND)
    second.make_folders()
    processes.start(second, "kubelet", ["sleep", "600"])
    kubelet = processes.find(second, "kubelet")
    for name in ("need_tools", "give_back"):
        monkeypatch.setattr(machine, name, lambda *_: None)
    monkeypatch.setattr(enclosure, "call", _refusing)  # of another cluster nothing is touched

    lifecycle.down(place)

    assert kubelet is not None
    assert not kubelet.lives
    assert list(place.root.glob("*/node2")) == [second.log]


def test_two_nodes_share_no_name_address_or_folder(place: Layout) -> None:
    folders = {getattr(place.of(node), name) for node in NODES for name in OWN_FOLDERS}

    assert len(folders) == len(NODES) * len(OWN_FOLDERS)
    for field in ("name", "address", "pods", "health", "prefix", "control_group"):
        assert len({getattr(node, field) for node in NODES}) == len(NODES)


@pytest.mark.skipif(os.geteuid() == 0, reason="needs somebody who is not root")
def test_who_is_not_root_is_told_so() -> None:
    with pytest.raises(ClusterTrouble, match="root"):
        machine.need_tools()


def test_a_command_that_fails_says_so_with_its_exit_code(place: Layout) -> None:
    words = [sys.executable, "-m", "tests.cluster", "status"]
    environment = {**os.environ, "ANUBIS_CLUSTER_HOME": str(place.root)}
    root = Path(__file__).parents[2]
    told = subprocess.run(words, env=environment, cwd=root, capture_output=True, text=True)

    assert told.returncode == 1
    assert "does not answer" in told.stderr


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _began(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def _can_pass(place: Layout) -> bool:
    """Whether nobody holds the turnstile."""
    words = ["flock", "--nonblock", str(place.root / "turnstile.lock"), "true"]
    return subprocess.run(words).returncode == 0


def _refusing(*words: str, **_: object) -> str:
    raise AssertionError(f"called {' '.join(words)}")


def _pretending(built: list[str]) -> Callable[..., str]:
    def go(component: building.Component, *words: str) -> str:
        Path(words[words.index("-o") + 1]).touch()
        built.append(component.name)
        return ""

    return go
