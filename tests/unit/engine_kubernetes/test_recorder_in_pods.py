"""The recorder in pods of a real cluster, whose node rotates logs at 1 MiB."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests import docker_images, kubectl, own_image, real_parts, recorded_pods
from tests.cluster import control
from tests.recorded_pods import Pod, Wanted, output, told

from anubis.adapters.engine.kubernetes.recording import Frame, Kind

pytestmark = pytest.mark.cluster

PYTHON = ("python3", "-u", "-c")

MANY_LINES = """
import sys, time
for number in range(int(sys.argv[1])):
    sys.stdout.write(f"line {number:08d} {'x' * 80}\\n")
    if number % 5000 == 0:
        sys.stdout.flush()
        print("at", number, file=sys.stderr, flush=True)
        time.sleep(float(sys.argv[2]))
"""

EMITTING = """
import time
from anubis.emit import emit
for number in range(20000):
    emit({"number": number})
    if number == 100:
        print("emitting", flush=True)
    if number % 100 == 0:
        time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def space() -> Iterator[kubectl.Space]:
    real_parts.need_docker()
    real_parts.need(kubectl.KUBECONFIG.is_file(), "there is no test cluster: make cluster")
    own_image.loaded()
    control.load(docker_images.python_mpi())
    with kubectl.space("recorder") as made:
        yield made
        words = ("--all", "--force", "--grace-period=0", "--wait=false")
        made.kubectl("delete", "pods", *words)


def pod(space: kubectl.Space, *command: str, **more: Any) -> Pod:
    name = f"pod-{secrets.token_hex(4)}"
    image = docker_images.python_mpi()
    return Pod(space, Wanted(name=name, image=image, command=command, **more))


def lines(count: int) -> bytes:
    return b"".join(b"line %08d %s\n" % (number, b"x" * 80) for number in range(count))


def cause(frames: Sequence[Frame]) -> object:
    [stopped] = told(frames, Kind.STOPPED)
    return stopped["cause"]


def kill_recorder(found: Pod) -> None:
    """As the kernel would: from outside, without a word."""
    real_parts.need(control.can_kill(), "the cluster's processes are not on this machine")
    identity = found.recorder()["containerID"].rpartition("/")[2]
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            group = (place / "cgroup").read_text()
            words = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if identity in group and recorded_pods.MODULE.encode() in words:
            os.kill(int(place.name), signal.SIGKILL)
            return
    raise AssertionError(f"no process of the recorder of {found.name} was found")


def test_no_line_is_lost_when_the_node_rotates_the_log(space: kubectl.Space) -> None:
    count = 400_000  # 38 MB, of which the node keeps a file of 1 MiB as soon as it looks
    frames = pod(space, *PYTHON, MANY_LINES, str(count), "0.15").sealed(180)
    assert output(frames, Kind.STDOUT) == lines(count)
    assert len(told(frames, Kind.FILE)) > 2, "it was rotated"
    [sealed] = told(frames, Kind.SEALED)
    assert sealed["stdout_bytes"] == len(lines(count))
    assert sealed["is_whole"] is True
    assert told(frames, Kind.NOTE) == []


def test_no_line_is_lost_when_the_recorder_is_killed(space: kubectl.Space) -> None:
    count = 200_000
    found = pod(space, *PYTHON, MANY_LINES, str(count), "0.15")
    found.until(Kind.STDOUT)
    kill_recorder(found)
    frames = found.sealed()
    assert found.recorder()["restartCount"] >= 1
    assert output(frames, Kind.STDOUT) == lines(count)
    marks = b"".join(b"at %d\n" % number for number in range(0, count, 5000))
    assert output(frames, Kind.STDERR) == marks
    assert told(frames, Kind.SEALED)[0]["is_whole"] is True


def test_what_is_emitted_is_kept_exactly_also_when_the_recorder_is_killed(
    space: kubectl.Space,
) -> None:
    as_somebody = {"image": own_image.NAME, "securityContext": {"runAsUser": 1000}}
    found = pod(space, *PYTHON, EMITTING, container=as_somebody)
    found.until(Kind.STDOUT, b"emitting")
    kill_recorder(found)
    frames = found.sealed()
    numbers = [json.loads(line)["number"] for line in output(frames, Kind.EMITTED).splitlines()]
    assert numbers == list(range(20000))


def test_bytes_of_any_kind_come_as_they_were_written(space: kubectl.Space) -> None:
    wrote = r"b'\x00\xff\r alone\n\n' + b'y' * 10_000_000 + b'\nno end'"
    frames = pod(space, *PYTHON, f"import os; os.closerange(2, 3); os.write(1, {wrote})").sealed()
    written = b"\x00\xff\r alone\n\n" + b"y" * 10_000_000 + b"\nno end"
    assert output(frames, Kind.STDOUT) == written


def test_a_stop_ends_the_whole_program_and_spares_everybody_else(space: kubectl.Space) -> None:
    stubborn = (
        "trap 'echo asked' TERM; (trap '' TERM; setsid sleep 100 &) ; while :; do sleep 0.1; done"
    )
    image = docker_images.python_mpi()
    other = {"name": "other", "image": image, "imagePullPolicy": "IfNotPresent"}
    found = pod(
        space,
        *("sh", "-c", f"echo ready; {stubborn}"),
        others=[{**other, "command": ["sleep", "60"]}],
    )
    found.until(Kind.STDOUT, b"ready")
    found.command("stop", "30", "canceled")
    found.until(Kind.STDOUT, b"asked")
    found.command("stop", "0.5", "dismissed")
    frames = found.until(Kind.STOPPED)
    kubectl.until(found.is_over, "the program has ended")
    assert cause(frames) == "canceled", "the first cause counts"
    assert found.ended()["exitCode"] == 137
    others = {one["name"]: one["state"] for one in found.status()["containerStatuses"]}
    assert "running" in others["other"]
    assert found.recorder()["restartCount"] == 0


def test_a_program_that_runs_too_long_is_stopped_without_anybody_asking(
    space: kubectl.Space,
) -> None:
    frames = pod(space, "sleep", "600", told={"running_seconds": 2.0}).sealed()
    assert cause(frames) == "timed_out"


def test_a_program_that_writes_too_much_is_stopped_and_its_output_cut(
    space: kubectl.Space,
) -> None:
    found = pod(space, "sh", "-c", "yes", told={"output_bytes": 100_000, "grace_seconds": 0.5})
    frames = found.sealed()
    assert cause(frames) == "output_limit"
    assert len(output(frames, Kind.STDOUT)) == 100_000
    assert told(frames, Kind.SEALED)[0]["is_whole"] is False


def test_a_program_that_is_killed_for_its_memory_is_recorded_to_its_end(
    space: kubectl.Space,
) -> None:
    hungry = "print('eats', flush=True); import time; time.sleep(1.5); b = b'x' * 10**9"
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    found = pod(space, *PYTHON, hungry, container=limits)
    frames = found.sealed()
    assert found.ended()["reason"] == "OOMKilled"
    assert output(frames, Kind.STDOUT) == b"eats\n"


def test_readings_tell_what_the_program_uses_and_nothing_of_ours(space: kubectl.Space) -> None:
    code = (
        "import subprocess, time; held = b'x' * 200_000_000\n"
        "subprocess.run(['python3', '-c', 'sum(range(30_000_000))'])\n"
        "sleeper = subprocess.Popen(['sleep', '3'])\n"
        "time.sleep(3)"
    )
    frames = pod(space, *PYTHON, code).sealed()
    readings = told(frames, Kind.READING)
    [*_, last] = readings
    assert {reading["processes"] for reading in readings} <= {1, 2}
    assert last["processes"] == 2
    assert last["threads"] == 2
    assert 200e6 < float(str(last["memory_bytes"])) < 300e6
    assert 0.2 < float(str(last["cpu_seconds"])) < 60, "of a child that has ended, too"
    [sealed] = told(frames, Kind.SEALED)
    assert 200e6 < float(str(sealed["peak_memory_bytes"])) < 300e6


def test_begin_and_end_are_seen_to_the_moment_and_all_processor_time_counts(
    space: kubectl.Space,
) -> None:
    """The cluster tells whole seconds, and a second reading would come too late."""
    code = (
        "import time; print(time.time_ns())\n"
        "while time.process_time() < 0.7: pass\n"
        "print(time.time_ns(), flush=True)"
    )
    frames = pod(space, *PYTHON, code).sealed()
    first, last = map(int, output(frames, Kind.STDOUT).split())
    [began] = [frame.at_ns for frame in frames if frame.kind == Kind.BEGAN]
    [ended] = [frame.at_ns for frame in frames if frame.kind == Kind.ENDED]
    assert began <= first < last <= ended
    [sealed] = told(frames, Kind.SEALED)
    assert 0.5 < float(str(sealed["cpu_seconds"])) < 10


def test_a_server_is_asked_and_its_answers_are_kept(space: kubectl.Space) -> None:
    code = (
        "import http.server, time; time.sleep(1)\n"
        "http.server.HTTPServer(('', 8080), http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    probe = {"kind": "http", "port": 8080, "path": "/", "period": 0.2}
    found = pod(space, *PYTHON, code, told={"readiness": probe})
    frames = found.until(Kind.CONDITION, b'"ready"')
    conditions = [one["condition"] for one in told(frames, Kind.CONDITION)]
    assert conditions == ["unready", "ready"]
    found.command("stop", "0", "dismissed")
    assert cause(found.sealed()) == "dismissed"


def test_a_recorder_that_is_released_lets_its_pod_end(space: kubectl.Space) -> None:
    found = pod(space, "true")
    found.sealed()
    found.command("release")
    kubectl.until(lambda: found.status()["phase"] == "Succeeded", "the pod has ended")


def test_a_deleted_pod_is_recorded_until_its_program_has_ended(space: kubectl.Space) -> None:
    slow = (
        "import signal, time, os\n"
        "def end(*_):\n"
        "    time.sleep(2); print('the end', flush=True); os._exit(0)\n"
        "signal.signal(15, end); print('ready'); time.sleep(600)"
    )
    found = pod(space, *PYTHON, slow)
    found.until(Kind.STDOUT, b"ready")
    space.ask("delete", "pod", found.name, "--wait=false")
    frames = found.sealed()
    assert output(frames, Kind.STDOUT) == b"ready\nthe end\n"
