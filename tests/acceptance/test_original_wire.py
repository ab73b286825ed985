"""The original wire over real sockets: asked with curl, as the original client asks.

The sequences are those of the original (A, C, D and G of its specification), letter by letter.
``ANUBIS_ORIGINAL_CLIENT`` may name a copy of the original client, bash script ``anubis`` of version
0.6.2: then it is tried too, with what it needs beside it (jq, uuidgen).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .serving import BARE, PATIENCE, Service, serving

pytestmark = pytest.mark.acceptance

CLIENT = "0123456789abcdef0123456789abcdef01234567"
TOML = """\
spec_version = "0.1.0"

[info]
description = "For the original wire"
scheduling = "{scheduling}"

[hardware]
instance_type = "t3.small"
strategy = "single_node"

[env]
docker_image = "user/repo:tag"

[ml]
benchmark_code = "{code}"
"""
LONG = "sleep 600"

Said = list[tuple[str, str, str]]


class Curl:
    """The calls of the original client, made by curl."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self._folder = folder

    def call(self, path: str, *options: str) -> str:
        """One call; the answer's body. Its header is checked as the client does."""
        heads = self._folder / "heads"
        command = ["curl", "-s", "-D", str(heads), *options, f"http://{self.endpoint}{path}"]
        body = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout
        lines = heads.read_text().splitlines()
        assert any(line.startswith("X-Service-Version: 0.6.") for line in lines), lines
        return body.decode()

    def submit(
        self, code: str, *, scheduling: str = "single_run", script: str = "", more: str = ""
    ) -> str:
        """Submit; gives the action id. ``more`` is further text of the descriptor."""
        content = TOML.format(code=code, scheduling=scheduling) + more
        if script:
            content += f'\n[ml.script]\nscript = "{Path(script).name}"\n'
        toml = {
            "descriptor_filename": "bench.toml",
            "sha1": hashlib.sha1(content.encode()).hexdigest(),
            "doc": base64.b64encode(content.encode()).decode(),
        }
        parts = ["-F", f"submit-event={json.dumps(message({'toml': toml}))}"]
        if script:
            parts += ["-F", f"script=@{script}"]
        return self.call("/api/job/descriptor", *parts)

    def cancel(self, target: str, **more: bool) -> str:
        """Cancel, with no word on the type of the body; gives the id of the command."""
        args = {"target_action_id": target, **more}
        body = json.dumps(message({"command": "cancel", "args": args}))
        path = f"/api/job/{CLIENT}/{target}"
        return self.call(path, "-X", "DELETE", "-H", "Content-Type:", "-d", body)

    def poll(self, action: str, since: str = "0") -> list[Any]:
        """What is new; the colon in ``since`` comes as %3a."""
        options = ["-X", "GET", "-G", "-H", "Content-Type:", "--data-urlencode", f"since={since}"]
        body = self.call(f"/api/job/{CLIENT}/{action}", *options)
        return list(json.loads(body)) if body else []

    def follow(self, action: str, end: str) -> Said:
        """Poll as ``--watch`` does until a text was told; gives all that was."""
        said, since = Said(), "0"
        give_up = time.monotonic() + PATIENCE
        while not any(text == end for _, _, text in said):
            assert time.monotonic() < give_up, said
            for event in self.poll(action, since):
                last, payload = event["visited"][-1], event["payload"]
                assert event["tstamp"] == last["tstamp"]
                assert not set(payload["message"]) & set('"\\\n')
                what = payload.get("status", payload.get("return_code"))
                said.append((last["svc"], what, payload["message"]))
                since = f"{last['tstamp']}:{event['message_id']}"
            time.sleep(0.1)
        return said


def message(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A message of the original client."""
    return {
        "message_id": "0D9E6D4F-7A1B-4A5C-9D3E-1F2A3B4C5D6E",
        "client_id": CLIENT,
        "client_version": "0.6.2",
        "client_sha1": "f" * 40,
        "client_username": "someone",
        "date": "Wed Oct 30 13:17:23 UTC 2019",
        "visited": [{"svc": "anubis-client", "tstamp": 1572441443000, "version": "0.6.2"}],
        "payload": payload,
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all: it must bear that."""
    with serving(tmp_path_factory.mktemp("original")) as service:
        yield service


@pytest.fixture
def curl(service: Service, tmp_path: Path) -> Curl:
    return Curl(service.endpoint, tmp_path)


def before(curl: Curl, action: str) -> Said:
    """What every run begins with."""
    return [
        ("bai-bff", "SUCCEEDED", "Submission has been successfully received..."),
        ("fetcher-dispatcher", "SUCCEEDED", "Nothing to fetch"),
        ("executor", "PENDING", "Processing benchmark submission request..."),
        ("executor", "SUCCEEDED", "Benchmark successfully created..."),
        ("watcher", "PENDING", "Watching Kubernetes benchmark"),
        ("watcher", "PENDING", "Benchmark pending node autoscaling"),
        ("watcher", "PENDING", "Benchmark pending pod initialization"),
        ("watcher", "RUNNING", "Benchmark running"),
        metrics(curl, action),
    ]


def metrics(curl: Curl, action: str) -> tuple[str, str, str]:
    address = f"http://{curl.endpoint}/api/v1/runs/{action}/metrics"
    return "watcher", "METRICS AVAILABLE", f"Metrics available for job {action} at {address}"


LAST = "No longer watching benchmark"


def test_a_successful_run_is_told_as_sequence_a(curl: Curl) -> None:
    action = curl.submit("echo hello")

    assert curl.follow(action, LAST) == [
        *before(curl, action),
        ("watcher", "SUCCEEDED", "Benchmark finished successfully"),
        metrics(curl, action),
        ("watcher", "SUCCEEDED", LAST),
    ]
    [hit] = json.loads(curl.call(f"/api/job/results/{CLIENT}/{action}"))
    assert hit["_source"]["log"] == "hello\n"


def test_a_failing_run_is_told_as_sequence_c(curl: Curl) -> None:
    action = curl.submit("sh -c 'exit 3'")

    assert curl.follow(action, LAST) == [
        *before(curl, action),
        ("watcher", "FAILED", "Benchmark failed for an unknown reason"),
        ("watcher", "FAILED", LAST),
    ]
    assert curl.poll(action)[-1]["payload"]["reason"] == "benchmark exited with code 3"


def test_a_canceled_run_is_told_as_sequence_d(curl: Curl) -> None:
    action = curl.submit(LONG)
    curl.follow(action, "Benchmark running")
    command = curl.cancel(action)

    assert curl.follow(action, LAST) == [
        *before(curl, action),
        ("fetcher-dispatcher", "PENDING", "Canceling downloads..."),
        ("fetcher-dispatcher", "SUCCEEDED", "No downloads to cancel..."),
        ("executor", "SUCCEEDED", "Execution successfully cancelled..."),
        ("watcher", "CANCELED", "Benchmark cancelled - watch ended"),
        ("watcher", "CANCELED", LAST),
    ]
    nothing = f"Cancel command failed: No resources found for '{action}'"
    told = [(one["visited"][-1]["svc"], one["payload"]) for one in curl.poll(command)]
    assert [(speaker, said.get("return_code"), said["message"]) for speaker, said in told] == [
        ("bai-bff", None, f"Action received, dispatching delete for <{action}>"),
        ("fetcher-dispatcher", 0, "Cancel command processed successfully"),
        ("sm-executor", 1, nothing),
        ("executor", 0, "Cancel command processed successfully"),
    ]


def test_a_schedule_and_its_run_are_told_as_sequence_g(curl: Curl) -> None:
    action = curl.submit(LONG, scheduling="0 0 1 1 *")
    fired = json.loads(curl.call(f"/api/v1/schedules/{action}/run", "-X", "POST"))["run"]["id"]
    spawning = f"Spawning benchmark with action_id: [{fired}]"

    assert curl.follow(action, spawning) == [
        ("bai-bff", "SUCCEEDED", "Submission has been successfully received..."),
        ("fetcher-dispatcher", "SUCCEEDED", "Nothing to fetch"),
        ("executor", "PENDING", "Processing scheduled benchmark submission request..."),
        (
            "executor",
            "SUCCEEDED",
            f"Scheduled benchmark successfully submitted with job id b-{action}",
        ),
        ("anubis-cron-job", "SUCCEEDED", spawning),
    ]
    assert curl.follow(fired, "Benchmark running") == before(curl, fired)[2:]

    curl.cancel(action, cascade=True)

    assert curl.follow(fired, LAST)[-1] == ("watcher", "CANCELED", LAST)
    assert curl.follow(action, "Execution successfully cancelled...")[-3:] == [
        ("fetcher-dispatcher", "PENDING", "Canceling downloads..."),
        ("fetcher-dispatcher", "SUCCEEDED", "No downloads to cancel..."),
        ("executor", "SUCCEEDED", "Execution successfully cancelled..."),
    ]


def packed(folder: Path) -> str:
    """An archive with a script, by the name it must have."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("src/main.sh")
        text = b'echo "I am in $BAI_SCRIPTS_PATH"\n'
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    file = folder / f"{hashlib.sha1(content.getvalue()).hexdigest()}.tar"
    file.write_bytes(content.getvalue())
    return str(file)


def test_uploaded_scripts_run_and_outlive_the_service(
    service: Service, curl: Curl, tmp_path: Path
) -> None:
    script = packed(tmp_path)
    path = f"/api/job/script/{Path(script).name}"
    before_upload = curl.call(path)
    action = curl.submit("sh $(BAI_SCRIPTS_PATH)/src/main.sh", script=script)
    told = curl.follow(action, LAST)
    [hit] = json.loads(curl.call(f"/api/job/results/{CLIENT}/{action}"))

    service.stop()
    service.start()

    assert (before_upload, curl.call(path)) == ("false", "true")
    assert hit["_source"]["log"] == f"I am in {service.home}/places/{action}/scripts\n"
    assert not (service.home / "runs" / action).exists()
    assert curl.follow(action, LAST) == told
    jobs = json.loads(curl.call(f"/api/job/{CLIENT}"))["action_ids"]
    assert action in [job["action_id"] for job in jobs]


def test_scripts_in_the_home_run_without_a_service(home: Any) -> None:
    (home.path / "scripts").mkdir(parents=True)
    name = Path(packed(home.path / "scripts")).name
    code = "sh $(BAI_SCRIPTS_PATH)/src/main.sh"
    text = TOML.format(code=code, scheduling="single_run")
    (home.folder / "scripted.toml").write_text(f'{text}[ml.script]\nscript = "{name}"\n')

    assert home.call("run", "scripted.toml").returncode == 0
    assert home.ask("logs", "last").startswith(f"I am in {home.path}/places/")


def test_a_script_that_nobody_uploaded_ends_the_run_and_the_watching(curl: Curl) -> None:
    name = "0" * 40 + ".tar"
    content = TOML.format(code="true", scheduling="single_run")
    toml = {
        "descriptor_filename": "bench.toml",
        "sha1": "",
        "doc": base64.b64encode(f'{content}[ml.script]\nscript = "{name}"\n'.encode()).decode(),
    }
    event = f"submit-event={json.dumps(message({'toml': toml}))}"
    action = curl.call("/api/job/descriptor", "-F", event)

    reason = (
        f"script archive {name} is not here: it was never uploaded, or was removed after long "
        "disuse; upload it first"
    )
    assert curl.follow(action, LAST)[1:] == [
        ("executor", "ERROR", f"Error executing benchmark: {reason}"),
        ("watcher", "FAILED", "Benchmark failed"),
        ("watcher", "FAILED", LAST),
    ]


def test_nobody_is_sent_to_another_host(curl: Curl) -> None:
    for path in ("//example.org/", "/%2f%2fexample.org/", "/%5cexample.org/"):
        head = curl.call(path, "--path-as-is", "-o", os.devnull, "-w", "%{redirect_url}")
        assert head.startswith(f"http://{curl.endpoint}/"), head


def calling(program: list[str], folder: Path, more: Mapping[str, str]) -> Any:
    """A client with a home of its own."""
    environment = {**BARE, "HOME": str(folder), **more}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return call


def described(folder: Path) -> None:
    """Descriptors of three kinds, and scripts."""
    for name, code in (("ok", "echo hello"), ("fail", "sh -c 'exit 1'"), ("long", LONG)):
        text = TOML.format(code=code, scheduling="single_run")
        (folder / f"{name}.toml").write_text(text)
    text = TOML.format(code="sh $(BAI_SCRIPTS_PATH)/src/main.sh", scheduling="single_run")
    (folder / "script.toml").write_text(text)
    (folder / "src").mkdir()
    (folder / "src/main.sh").write_text("echo from the script\n")


def ended(curl: Curl, call: Any) -> str:
    """The last action of a client, once it has ended."""
    action = str(call("--last-action-id").stdout.split()[-1])
    client = str(call("--get-client-id").stdout.split()[-1])
    give_up = time.monotonic() + PATIENCE
    while LAST not in curl.call(f"/api/job/{client}/{action}"):
        assert time.monotonic() < give_up
        time.sleep(0.1)
    return action


def test_the_client_that_is_served_does_it_all(curl: Curl, tmp_path: Path) -> None:
    described(tmp_path)
    tool = tmp_path / "anubis"
    tool.write_text(curl.call("/api/tools/anubis"))
    call = calling([sys.executable, str(tool)], tmp_path, {})

    assert call("--show-registered-service-endpoint").returncode == 1
    assert call("--register", curl.endpoint).returncode == 0
    assert "Ready And Willing" in call("--ping").stderr
    submission = call("--submit", "ok.toml")
    assert (submission.returncode, submission.stdout.strip()) == (0, ended(curl, call))
    watched = call("--status", "--watch", "--terminate")
    assert watched.returncode == 0, watched
    assert "|Benchmark finished successfully" in watched.stderr
    assert call("--status", "--tail").stderr == ""
    assert len(call("--status", "--sync-data").stderr.splitlines()) == 12
    assert call("--results").stdout == "hello\n"
    assert call("--show-descriptor").stdout.startswith('spec_version = "0.1.0"\n')
    assert call("--submit", submission.stdout.strip()).returncode == 0
    assert call("--submit", "fail.toml").returncode == 0
    ended(curl, call)
    assert call("--status", "--watch", "--terminate").returncode == 1
    assert call("--submit", "script.toml", "--script", "src").returncode == 0
    ended(curl, call)
    assert call("--results").stdout == "from the script\n"
    assert call("--submit", "script.toml", "--script", "src", "--force").returncode == 0
    assert call("--submit", "long.toml").returncode == 0
    assert call("--cancel", call("--last-action-id").stdout.strip()).returncode == 0
    ended(curl, call)
    assert call("--status", "--watch", "--terminate").returncode == 1
    assert len(call("--history").stdout.splitlines()) == 6
    assert call("--submit", "nothing.toml").returncode == 1
    assert call("--submit", "ok.toml", "--script", "nothing").returncode == 99
    assert call("--cancel", "nothing").returncode == 9
    assert call("--set-client-id", "somebody").stdout.startswith("somebody")
    assert call("--unset-client-id").returncode == 0
    assert call("--upgrade").returncode == 0
    assert call("--version").stdout == "0.6.2\n"
    for flag in ("--help", "--legend", "--banner", "--check-prerequisites", "--env-setup"):
        assert call(flag).stdout
    assert call("--unregister").returncode == 0
    assert call("--ping").returncode == 1


ORIGINAL = os.environ.get("ANUBIS_ORIGINAL_CLIENT", "")


@pytest.mark.skipif(not ORIGINAL, reason="ANUBIS_ORIGINAL_CLIENT names no copy of it")
def test_the_original_client_does_it_all(curl: Curl, tmp_path: Path) -> None:
    described(tmp_path)
    client = tmp_path / "bin" / "anubis"
    client.parent.mkdir()
    shutil.copy(ORIGINAL, client)
    (client.parent / "activate").touch()
    conda = client.parent / "conda"
    conda.touch()
    call = calling(["bash", str(client)], tmp_path, {"CONDA_EXE": str(conda)})

    assert call("--register", curl.endpoint).returncode == 0
    ping = call("--ping")
    assert "illing like Big Daddy Kane" in ping.stderr
    assert "NOT COMPATIBLE" not in ping.stderr
    call("--submit", "ok.toml")
    action = ended(curl, call)
    status = call("--status", "--watch", "--terminate")
    assert (status.returncode, status.stderr.count("\n")) == (0, 13)
    assert "Benchmark finished successfully" in status.stderr
    assert "hello" in call("--results").stdout
    assert TOML.partition("\n")[0] in call("--show-descriptor").stdout
    for _ in range(2):  # the second time it sends the descriptor twice in one file
        assert ended(curl, call) != call("--submit", action).stdout.split()[-1]
    call("--submit", "fail.toml")
    ended(curl, call)
    assert call("--status", "--watch", "--terminate").returncode == 1
    call("--submit", "script.toml", "--script", "src")
    ended(curl, call)
    assert "from the script" in call("--results").stdout
    call("--submit", "long.toml")
    call("--purge", call("--last-action-id").stdout.split()[-1])
    ended(curl, call)
    assert "Benchmark cancelled - watch ended" in call("--status").stderr
    assert call("--upgrade").returncode == 0
    assert client.read_text().startswith("#!/usr/bin/env python3")
