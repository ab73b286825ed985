"""What Docker is told of a container."""

from __future__ import annotations

from pathlib import Path

from anubis.adapters.engine.docker import composing
from anubis.adapters.engine.docker.shapes import ContainerShape
from anubis.domain import blanks
from anubis.domain.plan import Limits, Plan, Resources, Unit
from anubis.domain.run import RunId

NAMES = composing.Names(home="home", run_id=RunId("run"))


def a_unit(name: str = "benchmark", **fields: object) -> Unit:
    fields = {"command": ("python", "-V"), "environment": {}, "image": "image:1", **fields}
    return Unit(name=name, **fields)  # type: ignore[arg-type] # any field


def composed(*units: Unit) -> ContainerShape:
    """The container of the first."""
    plan = Plan(units=units, deciding=units[0].name, limits=Limits())
    setting = composing.Setting(
        names=NAMES,
        manners=composing.DOCKERS,
        fifo="/live/emit",
        has_network=composing.needs_network(plan),
    )
    return composing.container(setting, composing.placed(plan, units[0].name))


def test_a_command_takes_the_place_of_the_images_entry_point() -> None:
    shape = composed(a_unit())
    assert shape["Entrypoint"] == ["python", "-V"]
    assert "Cmd" not in shape


def test_arguments_are_for_the_entry_point_of_the_image() -> None:
    shape = composed(a_unit(command=(), arguments=("--fast",)))
    assert shape["Cmd"] == ["--fast"]
    assert "Entrypoint" not in shape


def test_a_single_unit_needs_no_network_of_its_own() -> None:
    shape = composed(a_unit())
    assert shape["HostConfig"]["NetworkMode"] == "default"
    assert "NetworkingConfig" not in shape


def test_several_units_are_called_by_their_names_in_a_network_of_the_run() -> None:
    url = f"http://{blanks.host('server')}:{blanks.port('server', 80)}"
    shape = composed(a_unit("client", command=("get", url)), a_unit("server", ports=(80,)))
    assert shape["Entrypoint"] == ["get", "http://server:80"]
    assert shape["Hostname"] == "client"
    assert shape["HostConfig"]["NetworkMode"] == "anubis-home-run"
    assert shape["NetworkingConfig"]["EndpointsConfig"] == {
        "anubis-home-run": {"Aliases": ["client"]}
    }


def test_everything_bears_the_labels_it_is_found_by() -> None:
    labels = {"anubis.home": "home", "anubis.run": "run"}
    assert composed(a_unit())["Labels"] == {**labels, "anubis.unit": "benchmark"}
    assert composing.network(NAMES)["Labels"] == labels


def test_memory_is_limited_without_swap_and_gpus_are_given_by_number() -> None:
    resources = Resources(
        cpus=1.5, memory_bytes=1024**3, gpus=2, gpu_ids=(1, 3), privileged=True, ulimits={"core": 0}
    )
    host = composed(a_unit(resources=resources, cpu_affinity=(0, 2)))["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["ShmSize"]) == (1024**3,) * 3
    assert host["NanoCpus"] == 1_500_000_000
    assert host["CpusetCpus"] == "0,2"
    assert host["DeviceRequests"] == [{"DeviceIDs": ["1", "3"], "Capabilities": [["gpu"]]}]
    assert host["Ulimits"] == [{"Name": "core", "Soft": 0, "Hard": 0}]
    assert host["Privileged"]


def test_without_limits_a_container_may_use_all() -> None:
    host = composed(a_unit(resources=Resources(extended_shm=False)))["HostConfig"]
    limits = {"NanoCpus", "Memory", "MemorySwap", "ShmSize", "CpusetCpus", "DeviceRequests"}
    assert limits.isdisjoint(host)


def test_what_the_descriptor_sets_wins_but_for_the_marks_of_the_run() -> None:
    variables = {"BENCHMARK_AI": "no", "ANUBIS_RUN_ID": "forged"}
    told = dict(line.split("=", 1) for line in composed(a_unit(environment=variables))["Env"])
    assert told["BENCHMARK_AI"] == "no"
    assert told["ANUBIS_RUN_ID"] == "run"
    assert told["ANUBIS_UNIT"] == "benchmark"


def test_two_homes_have_two_names(tmp_path: Path) -> None:
    names = {composing.home_id(tmp_path / name) for name in ("a", "b")}
    assert len(names) == 2
    assert composing.home_id(tmp_path / "a") == composing.home_id(tmp_path / "b" / ".." / "a")
