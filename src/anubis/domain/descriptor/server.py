"""The server that an inference benchmark measures: ``[server]``."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from anubis.domain.descriptor.hardware import ServerHardware
from anubis.domain.descriptor.workload import Output, Source, no_ulimits, no_variables


class ProbeScheme(enum.StrEnum):
    """How a probe talks to the server."""

    HTTP = "http"
    HTTPS = "https"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A request that tells whether the server is ready, or still alive."""

    path: str
    scheme: ProbeScheme = ProbeScheme.HTTP
    port: int | None = None  #: None: the first of the server's ports
    initial_delay_seconds: int = 10
    period_seconds: int = 10
    timeout_seconds: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ServerEnvironment:
    """``[server.env]``: what surrounds the server, and how to start it."""

    ports: tuple[int, ...]
    start_command: str  #: empty: the image's own command
    start_command_args: str = ""
    docker_image: str = ""
    privileged: bool = False
    extended_shm: bool = True
    ulimits: Mapping[str, int] = dataclasses.field(default_factory=no_ulimits)  #: -1: no limit
    vars: Mapping[str, str] = dataclasses.field(default_factory=no_variables)
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """``[server]``: everything about the measured server."""

    env: ServerEnvironment
    hardware: ServerHardware = dataclasses.field(default_factory=ServerHardware)
    models: tuple[Source, ...] = ()
    output: Output = dataclasses.field(default_factory=Output)
