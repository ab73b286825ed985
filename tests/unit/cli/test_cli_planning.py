"""``anubis plan``: a plan as people and programs read it, and nothing happens."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from pathlib import Path

import pytest

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
