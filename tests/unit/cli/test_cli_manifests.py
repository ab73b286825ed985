"""``anubis manifest`` and ``anubis export``: what Kubernetes gets, and nothing happens."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from anubis.adapters.engine.kubernetes.manifests import cron_job
from anubis.adapters.script_store import packing
from anubis.domain.document import Document
from anubis.domain.errors import UserError
from anubis.ports.run_reader import RunQuery
from anubis.testing import builders

from .conftest import World

MPI = """\
spec_version = "0.1.0"
info.description = "d"
info.scheduling = "@daily"
hardware = {strategy = "horovod", distributed = {num_instances = 2}}
env.docker_image = "mpi:1"
ml.benchmark_code = "train"
data.sources = [{src = "points.csv", path = "/data/points.csv"}]
"""
NIGHTLY = """\
spec_version = "0.1.0"
info = {description = "d", scheduling = "30 2 * * 5-7", labels = {task_name = "Nightly_train"}}
schedule = {time_zone = "Europe/Berlin", overlap = "cancel_previous", catch_up = "none"}
ml.benchmark_code = "train"
"""


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "ANUBIS_KUBECONFIG", "KUBERNETES_SERVICE_HOST", "ANUBIS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANUBIS_HOME", str(tmp_path / "home"))


@pytest.fixture
def mpi(tmp_path: Path) -> str:
    return written(tmp_path, MPI)


@pytest.fixture
def nightly(tmp_path: Path) -> str:
    return written(tmp_path, NIGHTLY)


def written(folder: Path, content: str) -> str:
    file = folder / "descriptor.toml"
    file.write_text(content, "utf-8")
    return str(file)


def objects(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_the_objects_are_printed_in_the_order_in_which_they_are_applied(
    world: World, mpi: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.call("manifest", mpi) == 0
    shown = capsys.readouterr()
    found = list(yaml.safe_load_all(shown.out))
    assert [one["kind"] for one in found] == ["Secret", "Secret", "Service", "Job", "Job"]
    assert {one["metadata"]["namespace"] for one in found} == {"default"}
    assert shown.err.startswith("no cluster was asked")
    assert not world.do(lambda: world.store.page(RunQuery()))


def test_what_only_a_run_has_is_stood_for(
    world: World, mpi: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.call("manifest", mpi)
    files, carried, *_, launcher = objects(capsys)
    assert files["stringData"]["keys.id"] == "<id: made for each run>\n"
    [part] = carried["data"].values()
    assert base64.b64decode(part).decode() == f"<{Path(mpi).parent}/points.csv>"
    assert launcher["metadata"]["labels"]["action-id"] == "00000000-0000-7000-8000-000000000000"


def test_code_is_not_needed_to_see_where_it_would_be(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "x").write_text("x", "utf-8")
    file = written(tmp_path, MPI.replace("data.sources", "# "))
    assert world.call("manifest", file, "--script", str(tmp_path / "code")) == 0
    _, code, *_ = objects(capsys)
    [part] = code["data"].values()
    assert base64.b64decode(part).startswith(b"<the archive ")


def test_signatures_are_not_printed(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, MPI.replace('points.csv", path', 'https://host/x?key=abc", path'))
    assert world.call("manifest", file) == 0
    shown = capsys.readouterr().out
    assert "key=abc" not in shown
    assert "https://host/x?" in shown


def test_a_namespace_can_be_tried(
    world: World, mpi: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.call("manifest", mpi, "--namespace", "team", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "List"
    assert {one["metadata"]["namespace"] for one in found["items"]} == {"team"}


def test_what_kubernetes_cannot_do_is_told_with_its_line(world: World, tmp_path: Path) -> None:
    file = written(tmp_path, MPI.replace('docker_image = "mpi:1"', "ulimits = {memlock = -1}"))
    with pytest.raises(UserError) as raised:
        world.call("manifest", file)
    assert f"{file}:5:" in str(raised.value)
    assert "env.docker_image" in str(raised.value)


def test_a_schedule_becomes_a_cronjob_of_its_service(
    world: World, nightly: str, capsys: pytest.CaptureFixture[str]
) -> None:
    service = ["--service", "https://bench.example:8443", "--token-secret", "bench-token"]
    assert world.call("export", "--cronjob", nightly, *service, "--namespace", "team") == 0
    kept, made = objects(capsys)
    assert kept["data"]["descriptor.toml"] == NIGHTLY
    assert kept["metadata"]["name"] == made["metadata"]["name"] == "anubis-nightly-train"
    spec = made["spec"]
    assert (spec["schedule"], spec["timeZone"]) == ("30 2 * * 5-6,0", "Europe/Berlin")
    assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("Replace", 60)
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["command"][:2] == ["anubis", "run"]
    told = {one["name"]: one for one in container["env"]}
    assert told["ANUBIS_ENDPOINT"]["value"] == "https://bench.example:8443"
    assert told["ANUBIS_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "bench-token"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)", "utf-8")
    return folder


def test_code_goes_along_with_a_cronjob_as_a_service_would_be_sent_it(
    world: World, nightly: str, code: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("export", "--cronjob", nightly, "--service", "h:80", "--script", str(code))
    assert world.call(*words) == 0
    kept, made = objects(capsys)
    [(name, text)] = kept["binaryData"].items()
    archive = base64.b64decode(text)
    assert name == f"{hashlib.sha256(archive).hexdigest()}.tar"
    with contextlib.closing(packing.pack(str(code))) as packed:
        assert (packed.name, packed.size) == (name, len(archive))
    [container] = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][-2:] == ["--script", f"/benchmarks/Nightly_train/{name}"]
    assert not world.do(lambda: world.scripts.has(name)), "nothing is sent"


def test_as_much_code_as_a_config_map_holds_goes_along(
    world: World, nightly: str, code: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is packed comes in records of 10,240 bytes."""
    room = cron_job.MOST - len(NIGHTLY)
    heads, unused = 3 * 512, 2 * 512
    (code / "train.py").unlink()
    (code / "large").write_bytes(b"\xff" * (room // 10240 * 10240 - heads - unused))
    words = ("export", "--cronjob", nightly, "--service", "h:80", "--script", str(code))
    assert world.call(*words) == 0
    [text] = objects(capsys)[0]["binaryData"].values()
    assert room - 10240 < len(base64.b64decode(text)) <= room


def test_code_that_a_config_map_does_not_hold_is_told_with_its_size_and_what_to_do(
    world: World, nightly: str, code: Path
) -> None:
    (code / "large").write_bytes(b"x" * cron_job.MOST)
    with pytest.raises(UserError) as raised:
        world.call("export", "--cronjob", nightly, "--service", "h:80", "--script", str(code))
    said = str(raised.value)
    assert said.startswith(f"{code}: found 1,054,720 bytes of code once packed, expected at most ")
    assert f"{cron_job.MOST - len(NIGHTLY):,}" in said
    assert "anubis submit FILE --script PATH" in said


def test_code_beside_a_descriptor_that_names_its_own_is_refused_with_its_line(
    world: World, tmp_path: Path, code: Path
) -> None:
    file = written(tmp_path, f'{NIGHTLY}ml.script.script = "{"0" * 40}.tar"\n')
    with pytest.raises(UserError, match="expected one of them") as raised:
        world.call("export", "--cronjob", file, "--service", "h:80", "--script", str(code))
    assert str(raised.value).startswith(f"{file}:5:")


def test_code_of_a_run_is_not_left_behind(world: World) -> None:
    name = f"{'0' * 64}.tar"
    document = Document(name="x", directory="", content=NIGHTLY.encode(), script=name)
    run = world.add(builders.a_run(document=document), document)
    with pytest.raises(UserError, match=f"with code .the archive {name}.*--script"):
        world.call("export", "--cronjob", run, "--service", "h:80")


def test_the_registered_service_is_used_and_its_token_stays_here(
    world: World,
    nightly: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ANUBIS_ENDPOINT", "bench.example:8080")
    monkeypatch.setenv("ANUBIS_TOKEN", "very-secret")
    world.call("export", "--cronjob", nightly)
    shown = capsys.readouterr().out
    assert "bench.example:8080" in shown
    assert "very-secret" not in shown


def test_without_a_service_nothing_can_be_exported(world: World, nightly: str) -> None:
    with pytest.raises(UserError, match="--service"):
        world.call("export", "--cronjob", nightly)


@pytest.mark.parametrize(
    ("scheduling", "words"),
    [("single_run", "five fields of cron"), ("0 0 L * *", "L, W and #")],
)
def test_what_cannot_be_a_cronjob_is_told_with_its_line(
    world: World, tmp_path: Path, scheduling: str, words: str
) -> None:
    plain = NIGHTLY.replace("schedule = ", "# ")
    file = written(tmp_path, plain.replace("30 2 * * 5-7", scheduling))
    with pytest.raises(UserError, match=words) as raised:
        world.call("export", "--cronjob", file, "--service", "h:80")
    assert str(raised.value).startswith(f"{file}:2:")


def test_a_cronjob_makes_up_for_one_firing_at_most(world: World, tmp_path: Path) -> None:
    file = written(tmp_path, NIGHTLY.replace("none", "all").replace("cancel_previous", "queue"))
    with pytest.raises(UserError, match=r"schedule\.catch_up: found 'all'"):
        world.call("export", "--cronjob", file, "--service", "h:80")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("@daily", "0 0 * * *"),
        ("*/5 1-3 * JAN-MAR MON-FRI", "*/5 1-3 * JAN-MAR MON-FRI"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 6-7", "0 0 * * 6,0"),
        ("0 0 * * 1-7", "0 0 * * 1-6,0"),
        ("0 0 * JUL WED", "0 0 * JUL WED"),
    ],
)
def test_days_are_counted_as_kubernetes_counts_them(ours: str, theirs: str) -> None:
    assert cron_job.cluster_cron(ours) == theirs
