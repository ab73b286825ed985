"""The whole descriptor, and the name of the trend line its runs belong to."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Final, Union

from anubis.domain.descriptor.hardware import Hardware
from anubis.domain.descriptor.kubernetes import Kubernetes
from anubis.domain.descriptor.recurrence import Recurrence
from anubis.domain.descriptor.server import Server
from anubis.domain.descriptor.workload import (
    Data,
    Environment,
    MachineLearning,
    Output,
    no_variables,
)
from anubis.domain.document import Document
from anubis.domain.plan import Limits

SINGLE_RUN: Final = "single_run"
"""Run once, now: the default of ``info.scheduling``."""

TASK_NAME: Final = "task_name"
"""The label that names the benchmark."""

# A recursive alias cannot use "|" with a forward reference before Python 3.12.
TomlValue = Union[  # noqa: UP007
    str, int, float, bool, date, datetime, time, tuple["TomlValue", ...], Mapping[str, "TomlValue"]
]
"""Any value a user may write, frozen."""


def no_parameters() -> Mapping[str, TomlValue]:
    """A default that nobody can change by accident."""
    return MappingProxyType({})


class ExecutionEngine(enum.StrEnum):
    """Where the user wants the run. ``default`` leaves the choice to the installation."""

    DEFAULT = "default"
    PROCESS = "process"
    DOCKER = "docker"
    KUBERNETES = "kubernetes"
    SAGEMAKER = "aws.sagemaker"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Info:
    """``[info]``: what the benchmark is, when and on which engine it runs."""

    description: str
    task_name: str = ""  #: the older place of ``labels.task_name``; any text
    scheduling: str = SINGLE_RUN  #: ``single_run`` or five cron fields
    execution_engine: ExecutionEngine = ExecutionEngine.DEFAULT
    priority: int = 0  #: higher ones leave the queue first
    labels: Mapping[str, str] = dataclasses.field(default_factory=no_variables)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CustomParams:
    """``[custom_params]``: settings of single engines."""

    python_version: str = "py3"
    sagemaker_job_name: str = ""
    dashboard: str = ""
    region: str = "us-east-1"
    merge: bool = False
    hyper_params: Mapping[str, TomlValue] = dataclasses.field(default_factory=no_parameters)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Descriptor:
    """One benchmark, completely described. Two spellings of the same thing give equal values."""

    spec_version: str
    info: Info
    hardware: Hardware = dataclasses.field(default_factory=Hardware)
    env: Environment = dataclasses.field(default_factory=Environment)
    ml: MachineLearning = dataclasses.field(default_factory=MachineLearning)
    data: Data = dataclasses.field(default_factory=Data)
    output: Output = dataclasses.field(default_factory=Output)
    server: Server | None = None
    kubernetes: Kubernetes = dataclasses.field(default_factory=Kubernetes)
    custom_params: CustomParams = dataclasses.field(default_factory=CustomParams)
    limits: Limits = dataclasses.field(default_factory=Limits)
    schedule: Recurrence = dataclasses.field(default_factory=Recurrence)


def benchmark_name(descriptor: Descriptor, document: Document) -> str:
    """What stays the same between runs over time: the name of the trend line.

    The label ``task_name``, else ``info.task_name``, else the file's name without its ending.
    Many projects keep each ``descriptor.toml`` in a folder of its own: there the folder names it,
    so that unrelated benchmarks do not share a line.
    """
    info = descriptor.info
    named = info.labels.get(TASK_NAME, "") or info.task_name.strip()
    return named or _name_of_file(document)


def _name_of_file(document: Document) -> str:
    name = _last_part(document.name)
    stem = name.rpartition(".")[0] or name
    if stem == "descriptor":
        folder = document.directory or document.name.replace("\\", "/").rpartition("/")[0]
        return _last_part(folder) or stem
    return stem or "benchmark"


def _last_part(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
