"""What a benchmark is made of: its environment, its code, its data and what it reports."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from types import MappingProxyType


def no_variables() -> Mapping[str, str]:
    """A default that nobody can change by accident."""
    return MappingProxyType({})


def no_ulimits() -> Mapping[str, int]:
    """The same for numbers."""
    return MappingProxyType({})


class Framework(enum.StrEnum):
    """The machine-learning framework: a dimension of the benchmark, needed by SageMaker only."""

    NONE = ""
    JAX = "jax"
    MXNET = "mxnet"
    NUMPY = "numpy"
    ONNXRUNTIME = "onnxruntime"
    PYTORCH = "pytorch"
    SCIKIT_LEARN = "scikit-learn"
    TENSORFLOW = "tensorflow"
    XGBOOST = "xgboost"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """``[env]``: what surrounds the benchmark's program."""

    docker_image: str = ""  #: empty: none, which only engines without images can do
    privileged: bool = False
    extended_shm: bool = True
    ulimits: Mapping[str, int] = dataclasses.field(default_factory=no_ulimits)  #: -1: no limit
    vars: Mapping[str, str] = dataclasses.field(default_factory=no_variables)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """``[ml.script]``: an archive of code uploaded beside the descriptor."""

    script: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MachineLearning:
    """``[ml]``: the command, and what it is written with."""

    benchmark_code: str = ""  #: empty: the image's own command
    args: str = ""
    framework: Framework = Framework.NONE
    framework_version: str = ""
    script: Script | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Data (or a model) to fetch before the run, and where the program finds it."""

    src: str
    path: str
    md5: str = ""  #: hex digits, or ``algorithm:hex``; empty: unknown
    unpack: bool = False  #: whether it is an archive whose content is wanted
    id: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """``[data]``: all that must be fetched."""

    sources: tuple[Source, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A number to be found in the output. ``pattern`` is RE2 with at most one group."""

    name: str
    units: str
    pattern: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """``[output]``: what to collect. Names are unique."""

    metrics: tuple[Metric, ...] = ()
