"""What a guard reads: the daemon's frames, control groups, exit codes and complaints."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from anubis.adapters.engine.process.guardian import cgroups, container_state, docker_api

CONTAINER = "4f" * 32


def frame(stream: int, content: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def test_frames_may_be_cut_anywhere_and_neighbours_of_one_stream_are_joined(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    data = frame(1, b"one\n") + frame(1, b"two\n") + frame(2, b"oh\n") + frame(1, b"three")
    log = docker_api.Log(docker_api.Answer(ours, 200, data[:3]), [0, 0])
    found = log.early()
    for position in range(3, len(data), 7):
        theirs.sendall(data[position : position + 7])
        found += log.read(4096) or []
    theirs.close()
    assert log.read(4096) is None
    log.close()
    assert b"".join(part for stream, part in found if stream == 0) == b"one\ntwo\nthree"
    assert b"".join(part for stream, part in found if stream == 1) == b"oh\n"


def test_what_was_kept_before_is_not_told_again(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    data = frame(1, b"one\n") + frame(2, b"oh\n") + frame(1, b"two\n")
    log = docker_api.Log(docker_api.Answer(ours, 200, data), [6, 3])
    assert log.early() == [(0, b"o\n")]
    log.close()
    theirs.close()


@pytest.mark.parametrize(
    ("code", "told"),
    [(0, (0, None)), (3, (3, None)), (137, (None, 9)), (143, (None, 15)), (128, (128, None))],
)
def test_a_signal_is_in_the_exit_code(code: int, told: tuple[int | None, int | None]) -> None:
    assert container_state.exit_of(code) == told


def test_moments_are_read_to_the_nanosecond() -> None:
    moment = container_state.nanoseconds("2024-01-31T10:00:00.123456789Z")
    assert moment == 1_706_695_200_123_456_789
    assert container_state.nanoseconds("2024-01-31T10:00:00Z") == 1_706_695_200_000_000_000
    assert container_state.nanoseconds("0001-01-01T00:00:00Z") > moment  # it means: never


def test_an_init_that_complains_is_understood() -> None:
    words = b"[FATAL tini (7)] exec nope failed: No such file or directory\n"
    assert container_state.is_complaint(words)
    assert not container_state.is_complaint(b"my own error\n")
    assert "not found" in container_state.explained(words.decode())


def a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, mounts: list[str]
) -> None:
    """Let the kernel's lists be files."""
    lists = {"/proc/7/cgroup": groups.splitlines(), cgroups.MOUNTS: mounts}
    real = cgroups._lines

    def lines(path: str) -> list[bytes]:
        return [line.encode() for line in lists[path]] if path in lists else real(path)

    monkeypatch.setattr(cgroups, "_lines", lines)


def test_a_group_of_the_unified_hierarchy_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/system.slice/docker-{CONTAINER}.scope"
    folder = tmp_path / path.lstrip("/")
    folder.mkdir(parents=True)
    for name, text in {
        "cpu.stat": "usage_usec 1500000\nuser_usec 1000000\n",
        "memory.stat": "anon 100\ninactive_file 24\n",
        "memory.current": "1024\n",
        "io.stat": "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2\n",
        "pids.current": "5\n",
        "cgroup.procs": "7\n8\n9\n",
    }.items():
        (folder / name).write_text(text)
    mount = f"30 24 0:26 / {tmp_path} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
    a_machine(tmp_path, monkeypatch, f"0::{path}", [mount])
    group = cgroups.find(7, CONTAINER, 1)
    assert group is not None
    assert group.read() == (1_500_000_000, 1000, 11, 22, 4, 2)


def test_groups_of_the_old_hierarchies_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/docker/{CONTAINER}"
    contents = {
        "cpu,cpuacct": {"cpuacct.usage": "77\n"},
        "memory": {
            "memory.stat": "cache 5\ntotal_inactive_file 24\n",
            "memory.usage_in_bytes": "1024\n",
        },
        "blkio": {
            "blkio.throttle.io_service_bytes_recursive": "8:0 Read 3\n8:0 Write 4\nTotal 7\n"
        },
        "pids": {"pids.current": "2\n", "cgroup.procs": "7\n8\n"},
    }
    mounts, groups = [], []
    for number, (controllers, files) in enumerate(contents.items()):
        folder = tmp_path / controllers / path.lstrip("/")
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        point = tmp_path / controllers
        mounts.append(f"3{number} 24 0:2{number} / {point} rw - cgroup cgroup rw,{controllers}")
        groups.append(f"{number}:{controllers}:{path}")
    a_machine(tmp_path, monkeypatch, "\n".join(groups), mounts)
    group = cgroups.find(7, CONTAINER, 1)
    assert group is not None
    assert group.read() == (77, 1000, 3, 4, 1, 1)


def test_the_group_of_another_container_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = f"30 24 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw"
    a_machine(tmp_path, monkeypatch, "0::/user.slice", [mount])
    assert cgroups.find(7, CONTAINER, 1) is None
