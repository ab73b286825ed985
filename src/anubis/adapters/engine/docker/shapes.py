"""What Docker wants to be told of a container and of a network, as its API spells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict


class MountShape(TypedDict):
    """A file or folder of the machine inside a container."""

    Type: str
    Source: str
    Target: str
    ReadOnly: bool


class UlimitShape(TypedDict):
    """What ``ulimit`` sets."""

    Name: str
    Soft: int
    Hard: int


class DevicesShape(TypedDict):
    """GPUs by their numbers."""

    DeviceIDs: Sequence[str]
    Capabilities: Sequence[Sequence[str]]


class LogShape(TypedDict):
    """Where the daemon keeps what a container writes."""

    Type: str
    Config: Mapping[str, str]


class HostShape(TypedDict):
    """What a container gets of the machine."""

    Init: bool
    LogConfig: LogShape
    Mounts: Sequence[MountShape]
    Privileged: bool
    NetworkMode: str
    NanoCpus: NotRequired[int]
    CpusetCpus: NotRequired[str]
    Memory: NotRequired[int]
    MemorySwap: NotRequired[int]
    ShmSize: NotRequired[int]
    Ulimits: NotRequired[Sequence[UlimitShape]]
    DeviceRequests: NotRequired[Sequence[DevicesShape]]


class EndpointShape(TypedDict):
    """How a container is called in a network."""

    Aliases: Sequence[str]


class NetworkingShape(TypedDict):
    """The networks of a container."""

    EndpointsConfig: Mapping[str, EndpointShape]


class ContainerShape(TypedDict):
    """All that is told when a container is created."""

    Image: str
    Env: Sequence[str]
    Labels: Mapping[str, str]
    HostConfig: HostShape
    Hostname: NotRequired[str]
    Entrypoint: NotRequired[Sequence[str]]
    Cmd: NotRequired[Sequence[str]]
    WorkingDir: NotRequired[str]
    NetworkingConfig: NotRequired[NetworkingShape]


class NetworkShape(TypedDict):
    """All that is told when a network is made."""

    Driver: str
    Labels: Mapping[str, str]
