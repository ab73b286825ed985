"""``inference``: a server, and a client that measures it once it is ready."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from anubis.domain import blanks
from anubis.domain import descriptor as model
from anubis.domain.plan import Probe, ProbeKind, Unit
from anubis.stages.planning import commands, machines, programs
from anubis.stages.planning.layout import Draft, Layout, Task, definitions
from anubis.stages.planning.programs import SERVER_FIELDS, Program

SERVER: Final = "server"
CLIENT: Final = "client"

HOST_VARIABLE: Final = "INFERENCE_SERVER_HOST"
PORT_VARIABLE: Final = "INFERENCE_SERVER_PORT"

QUICK: Final = timedelta(seconds=0.5)
"""How often a port is tried that no probe was described for. A refused connection costs nothing,
and nobody should wait ten seconds for a server that needs one."""


def draft(task: Task) -> Draft:
    """Server and client. Both know where the server listens."""
    server = _server(task.descriptor)
    told = _addresses(_ports(server.env))
    client = programs.benchmark(task.descriptor, task.place, CLIENT, task.data)
    return Draft(
        programs=(
            dataclasses.replace(_program(task, server), told=told, data=task.models),
            dataclasses.replace(client, told=told),
        )
    )


def layout(task: Task) -> Layout:
    """The client starts when the server is ready, and decides."""
    serving, measuring = draft(task).programs
    server = _server(task.descriptor)
    client = programs.unit(measuring, task.place)
    return Layout(
        units=(
            _served(programs.unit(serving, task.place), server.env),
            dataclasses.replace(client, after=(SERVER,)),
        ),
        deciding=CLIENT,
        metrics=(
            *definitions(task.descriptor.output, CLIENT),
            *definitions(server.output, SERVER),
        ),
    )


def _server(descriptor: model.Descriptor) -> model.Server:
    assert descriptor.server is not None, "the rules of descriptors see to it"
    return descriptor.server


def _program(task: Task, server: model.Server) -> Program:
    env, hardware = server.env, server.hardware
    return Program(
        name=SERVER,
        fields=SERVER_FIELDS,
        command=commands.split(env.start_command),
        arguments=commands.split(env.start_command_args),
        image=env.docker_image,
        variables=env.vars,
        resources=programs.resources(env, hardware, task.place),
        placement=machines.placement(task.descriptor, hardware),
        cpu_affinity=hardware.cpu_affinity,
        niceness=hardware.niceness,
    )


def _ports(env: model.ServerEnvironment) -> tuple[int, ...]:
    """Where the server listens: also where only a probe asks, each once."""
    probed = (probe.port for probe in (env.readiness_probe, env.liveness_probe) if probe)
    return tuple(dict.fromkeys((*env.ports, *(port for port in probed if port is not None))))


def _addresses(ports: tuple[int, ...]) -> Mapping[str, str]:
    """Where the server is, as the original told it."""
    names = [PORT_VARIABLE, *(f"{PORT_VARIABLE}_{index}" for index in range(1, len(ports)))]
    told = {name: blanks.port(SERVER, port) for name, port in zip(names, ports, strict=False)}
    return {HOST_VARIABLE: blanks.host(SERVER), **told}


def _served(unit: Unit, env: model.ServerEnvironment) -> Unit:
    ports = _ports(env)
    readiness = _probe(env.readiness_probe, ports)
    if readiness is None and ports:
        readiness = Probe(kind=ProbeKind.TCP, port=ports[0], period=QUICK)
    return dataclasses.replace(
        unit,
        ports=ports,
        readiness=readiness,
        liveness=_probe(env.liveness_probe, ports),
        is_service=True,
    )


def _probe(probe: model.Probe | None, ports: tuple[int, ...]) -> Probe | None:
    if probe is None:
        return None
    return Probe(
        kind=ProbeKind(probe.scheme.value),
        port=ports[0] if probe.port is None else probe.port,
        path=probe.path if probe.path.startswith("/") else f"/{probe.path}",
        initial_delay=timedelta(seconds=probe.initial_delay_seconds),
        period=timedelta(seconds=probe.period_seconds),
        timeout=timedelta(seconds=probe.timeout_seconds),
        success_threshold=probe.success_threshold,
        failure_threshold=probe.failure_threshold,
    )
