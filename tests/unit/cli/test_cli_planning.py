"""``anubis plan``: a plan as people and programs read it, and nothing happens."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.domain.errors import UserError
from anubis.ports.engine import Capabilities
from anubis.ports.run_reader import RunQuery

from .conftest import PROCESS, World

EVERYTHING = Capabilities(
    name="process",
    strategies=frozenset({"single_node", "inference", "horovod"}),
    needs_image=False,
    honours_affinity=True,
)
INFERENCE = """\
spec_version = "0.1.0"
info.description = "d"
info.scheduling = "@daily"
hardware.strategy = "inference"
ml.benchmark_code = "client $(INFERENCE_SERVER_PORT) /data $(BAI_SCRIPTS_PATH)/x"
data.sources = [{src = "https://host/x?key=secret", path = "/data", unpack = true}]
server.env = {ports = [8080], start_command = "serve 'two words'"}
server.hardware = {memory = "1KiB"}
"""
CLUSTER = """\
spec_version = "0.1.0"
info.description = "d"
hardware.strategy = "inference"
hardware.availability_zone = "us-east-1a"
hardware.cpus = 2
hardware.memory = "1GiB"
hardware.exclusive = true
env.docker_image = "i"
ml.benchmark_code = "measure"
server.env = {ports = [8080], start_command = "serve", docker_image = "i"}
server.hardware = {instance_type = "p3.8xlarge"}
[kubernetes]
node_selector = {pool = "bench"}
tolerations = [{operator = "Exists", effect = "NoSchedule"}, {key = "k", value = "v"}]
annotations = {"a/b" = "c"}
service_account = "me"
image_pull_secrets = ["one", "two"]
priority_class = "high"
runtime_class = "nvidia"
"""


@pytest.fixture
def descriptor(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("UNTOLD", "a secret of the shell")
    world.application = dataclasses.replace(
        world.application, engines={"process": EVERYTHING, "small": PROCESS}
    )
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "x").write_text("x", "utf-8")
    file = tmp_path / "inference.toml"
    file.write_text(INFERENCE, "utf-8")
    return str(file)


def call(world: World, descriptor: str, *more: str) -> int:
    return world.call("plan", descriptor, "--script", str(Path(descriptor).parent / "code"), *more)


def test_a_plan_is_a_table_of_units_and_what_they_need(
    world: World, descriptor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(world, descriptor) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("on process, asking for 1 KiB of memory")
    assert [" ".join(line.split()) for line in lines[2:5]] == [
        "unit runs uses ports starts after ready when its end",
        "server serve 'two words' 1 KiB 8080 tcp 8080 answers, every 0.50 s fails the run",
        "client client <port 8080 of server> <data 0> <scripts>/x server decides",
    ]
    assert " ".join(lines[-1].split()) == "https://host/x?… its content, unpacked data.sources[0]"


def test_a_plan_shows_which_unit_has_which_variables_and_mounts(
    world: World, descriptor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    isolated = dataclasses.replace(EVERYTHING, needs_image=True, isolates=True)
    world.application = dataclasses.replace(world.application, engines={"process": isolated})
    more = 'env = {docker_image = "i", privileged = true, ulimits = {nofile = 9, core = -1}}\n'
    served = INFERENCE.replace("server.env = {", 'server.env = {docker_image = "i", ')
    Path(descriptor).write_text(served + more, "utf-8")
    assert call(world, descriptor) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "all privileges, nofile up to 9, core without limit" in lines[4]
    assert "variable value of" in lines
    assert "INFERENCE_SERVER_HOST <host of server> all" in lines
    assert "ANUBIS_DATA_0 /data client" in lines
    assert "mounted at from to of" in lines
    assert "/bai/scripts <scripts> read and write all" in lines
    assert "/data <data 0> read client" in lines


def test_a_plan_for_a_cluster_shows_where_units_may_run_and_what_must_be_free(
    world: World, descriptor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.application = dataclasses.replace(world.application, engines={"kubernetes": KUBERNETES})
    Path(descriptor).write_text(CLUSTER, "utf-8")
    assert world.call("plan", descriptor, "--engine", "kubernetes") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "on kubernetes, asking for nothing in particular"
    at_least = "at least 31.3 CPUs, at least 222 GiB, 4 GPUs"
    assert lines[3].startswith(f"server serve i {at_least} 8080")
    assert lines[4].startswith("client measure i 2 CPUs, 1 GiB server")
    place = "in us-east-1a, pool=bench, alone tolerates every taint:NoSchedule, tolerates k=v, "
    wishes = "service account me, pull secrets one two, priority high, runtime nvidia, a/b=c"
    at = lines.index("runs on with unit")
    assert lines[at + 1 : at + 3] == [
        f"p3.8xlarge, {place}{wishes} server",
        f"{place}{wishes} client",
    ]


def test_a_unit_of_a_cluster_that_may_run_anywhere_says_nothing_of_places(
    world: World, descriptor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.application = dataclasses.replace(world.application, engines={"kubernetes": KUBERNETES})
    text = 'spec_version = "0.1.0"\ninfo.description = "d"\nenv.docker_image = "i"\n'
    Path(descriptor).write_text(text, "utf-8")
    assert world.call("plan", descriptor, "--engine", "kubernetes", "--json") == 0
    (unit,) = json.loads(capsys.readouterr().out)["units"]
    assert unit["placement"] is None


def test_a_plan_in_json_has_no_secrets_of_the_shell_or_of_links(
    world: World, descriptor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(world, descriptor, "--json") == 0
    out = capsys.readouterr().out
    assert "secret" not in out
    plan = json.loads(out)
    assert [(unit["name"], unit["decides"]) for unit in plan["units"]] == [
        ("server", False),
        ("client", True),
    ]
    assert plan["units"][1]["environment"]["ANUBIS_DATA_0"] == "<data 0>"
    assert plan["demand"]["memory_bytes"] == 1024


def test_planning_stores_and_starts_nothing(world: World, descriptor: str) -> None:
    call(world, descriptor)
    assert world.woken == 0
    assert not world.do(lambda: world.store.page(RunQuery()))
    later = world.application.clock.now() + timedelta(days=1)
    assert world.do(lambda: world.scripts.forget_unused(later)) == 0


def test_an_engine_that_cannot_do_it_is_told_with_the_field(world: World, descriptor: str) -> None:
    with pytest.raises(UserError, match=r"hardware\.strategy: the engine 'process' cannot run"):
        call(world, descriptor, "--engine", "small")
