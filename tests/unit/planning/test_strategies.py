"""Strategies of several units: what the files beside ``test_golden_plans`` do not show."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from anubis.domain import blanks
from anubis.domain import descriptor as model
from anubis.domain.errors import UserError
from anubis.domain.plan import Plan, ProbeKind
from anubis.ports.engine import Capabilities
from anubis.stages.planning import commands
from anubis.stages.planning.planning import Context, plan

SHARED = Capabilities(
    name="process", strategies=frozenset(model.Strategy), needs_image=False, honours_affinity=True
)
ISOLATED = dataclasses.replace(SHARED, name="docker", needs_image=True, isolates=True)
CONTEXT = Context(directory="/here", environment={}, python="python")


def descriptor(strategy: model.Strategy, code: str = "run", **hardware: Any) -> model.Descriptor:
    return model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        hardware=model.Hardware(strategy=strategy, **hardware),
        env=model.Environment(docker_image="image"),
        ml=model.MachineLearning(benchmark_code=code),
    )


def horovod(code: str, args: str = "", engine: Capabilities = SHARED, **hardware: Any) -> Plan:
    made = descriptor(model.Strategy.HOROVOD, code, **hardware)
    ml = dataclasses.replace(made.ml, args=args)
    return plan(dataclasses.replace(made, ml=ml), engine, CONTEXT)


def obstacles(made: model.Descriptor, engine: Capabilities = SHARED) -> list[str]:
    with pytest.raises(UserError) as caught:
        plan(made, engine, CONTEXT)
    return str(caught.value).split("\n")


def server(**env: Any) -> model.Server:
    return model.Server(env=model.ServerEnvironment(**{"ports": (1,), "start_command": "s", **env}))


def test_a_server_without_a_probe_is_ready_when_it_accepts_connections() -> None:
    made = dataclasses.replace(descriptor(model.Strategy.INFERENCE), server=server(ports=(7, 8)))
    probe = plan(made, SHARED, CONTEXT).unit("server").readiness
    assert probe is not None
    assert (probe.kind, probe.port, probe.period) == (ProbeKind.TCP, 7, timedelta(seconds=0.5))


def test_a_server_without_ports_is_ready_as_soon_as_it_runs_and_has_no_port_to_tell() -> None:
    made = dataclasses.replace(descriptor(model.Strategy.INFERENCE), server=server(ports=()))
    assert plan(made, SHARED, CONTEXT).unit("server").readiness is None
    asking = dataclasses.replace(
        descriptor(model.Strategy.INFERENCE, "c $(INFERENCE_SERVER_PORT)"), server=made.server
    )
    (line,) = obstacles(asking)
    assert "$(INFERENCE_SERVER_PORT) names a variable that is not defined" in line


def test_a_port_that_only_a_probe_names_is_one_of_the_servers() -> None:
    probe = model.Probe(path="/", port=9)
    made = dataclasses.replace(
        descriptor(model.Strategy.INFERENCE), server=server(ports=(7, 7), liveness_probe=probe)
    )
    unit = plan(made, SHARED, CONTEXT).unit("server")
    assert unit.ports == (7, 9)
    assert unit.environment["INFERENCE_SERVER_PORT_1"] == blanks.port("server", 9)


def test_what_the_author_says_about_the_server_wins() -> None:
    made = dataclasses.replace(
        descriptor(model.Strategy.INFERENCE, "c $(INFERENCE_SERVER_HOST)"),
        env=model.Environment(docker_image="i", vars={"INFERENCE_SERVER_HOST": "proxy"}),
        server=server(),
    )
    assert plan(made, SHARED, CONTEXT).unit("client").command == ("c", "proxy")


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("train --fast", ("mpirun", "-np", "6", "train", "--fast")),
        ("mpirun -np 2 train", ("mpirun", "-np", "2", "train")),
        ("/opt/bin/mpiexec train", ("/opt/bin/mpiexec", "train")),
        ("horovodrun -np $(ANUBIS_PROCESSES) t", ("horovodrun", "-np", "6", "t")),
        ("bash -c 'mpirun a'", ("mpirun", "-np", "6", "bash", "-c", "mpirun a")),
    ],
)
def test_a_command_is_run_by_all_ranks_unless_it_starts_them_itself(
    code: str, command: tuple[str, ...]
) -> None:
    size = model.Distributed(num_instances=3, processes_per_instance=2)
    (launcher,) = horovod(code, distributed=size).units
    assert launcher.command == command


def test_a_shell_that_ranks_run_expands_what_it_knows_itself() -> None:
    (launcher,) = horovod("sh -c 'echo $(hostname) $(ANUBIS_PROCESSES)'").units
    assert launcher.command[-1] == "echo $(hostname) 2"
    (line,) = obstacles(descriptor(model.Strategy.HOROVOD, "echo $(hostname)"))
    assert "$(hostname) names a variable that is not defined" in line


def test_quotes_in_a_script_need_no_partner_but_those_of_a_command_do() -> None:
    assert horovod("#!/bin/sh\necho don't").files["entrypoint.sh"] == "#!/bin/sh\necho don't\n"
    (line,) = obstacles(descriptor(model.Strategy.HOROVOD, "echo don't"))
    assert line == "ml.benchmark_code, ml.args: a quote is opened and never closed"


def test_an_image_may_be_the_launcher_by_itself() -> None:
    launcher = horovod("", "--fast", ISOLATED).unit("launcher")
    assert (launcher.command, launcher.arguments) == ((), ("--fast",))


def test_machines_on_one_machine_ask_for_all_of_it_together() -> None:
    size = model.Distributed(num_instances=3)
    (launcher,) = horovod("t", distributed=size, cpus=2.0, memory_bytes=10, gpus=1).units
    assert launcher.resources.cpus == 6.0
    assert (launcher.resources.memory_bytes, launcher.resources.gpus) == (30, 3)


def test_one_process_for_each_gpu_needs_gpus() -> None:
    size = model.Distributed(num_instances=2, processes_per_instance="gpus")
    for strategy in (model.Strategy.HOROVOD, model.Strategy.MXNET_PARAMETER_SERVER):
        (line,) = obstacles(descriptor(strategy, distributed=size))
        assert line.startswith("hardware.distributed.processes_per_instance: found 'gpus'")


@pytest.mark.parametrize("size", [(1025, 1), (1, 1025), (33, 32), (16**5000, 16**5000)])
@pytest.mark.parametrize(
    "strategy", [model.Strategy.HOROVOD, model.Strategy.MXNET_PARAMETER_SERVER]
)
def test_a_size_that_is_a_slip_of_the_keyboard_is_refused_at_once(
    strategy: model.Strategy, size: tuple[int, int]
) -> None:
    asked = model.Distributed(num_instances=size[0], processes_per_instance=size[1])
    (line,) = obstacles(descriptor(strategy, distributed=asked))
    assert line.startswith("hardware.distributed: found more than 1,024 processes")


def test_workers_of_a_parameter_server_cannot_share_a_gpu() -> None:
    size = model.Distributed(num_instances=2, processes_per_instance=2)
    (line,) = obstacles(descriptor(model.Strategy.MXNET_PARAMETER_SERVER, distributed=size, gpus=3))
    assert line.startswith("hardware.gpus: found 3 for 2 workers on each instance")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("#!/bin/sh\na\n", "#!/bin/sh\na\n"),
        ("\n   #!/bin/sh\n   a \\  \n     b", "#!/bin/sh\na \\\n  b\n"),
        ("#!/usr/bin/python3\n  if a:\n    b\n\n  c", "#!/usr/bin/python3\nif a:\n  b\n\nc\n"),
        ("#!/bin/sh", "#!/bin/sh\n"),
    ],
)
def test_a_script_is_not_indented_as_in_its_descriptor(text: str, script: str) -> None:
    assert commands.is_script(text)
    assert commands.script(text) == script


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("#!/bin/bash -ex -o", ("/bin/bash", "-ex -o")),
        ("#! /usr/bin/env python3", ("/usr/bin/env", "python3")),
        ("#!", ("/bin/sh",)),
    ],
)
def test_a_script_is_run_as_the_kernel_would(line: str, words: tuple[str, ...]) -> None:
    assert commands.interpreter(f"{line}\nx") == words
