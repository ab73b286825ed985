"""The descriptor: what one TOML document means, once every spelling is normalised.

Belongs here: the frozen values, their defaults, and what follows from them alone. Does not belong
here: TOML, positions in a file, messages; the stage ``descriptor`` reads documents into this model.
"""

from anubis.domain.descriptor.descriptor import (
    SINGLE_RUN,
    TASK_NAME,
    CustomParams,
    Descriptor,
    ExecutionEngine,
    Info,
    TomlValue,
    benchmark_name,
)
from anubis.domain.descriptor.hardware import GPUS, Distributed, Hardware, ServerHardware, Strategy
from anubis.domain.descriptor.kubernetes import Kubernetes, TaintEffect, TolerationOperator
from anubis.domain.descriptor.recurrence import Recurrence
from anubis.domain.descriptor.server import Probe, ProbeScheme, Server, ServerEnvironment
from anubis.domain.descriptor.workload import (
    Data,
    Environment,
    Framework,
    MachineLearning,
    Metric,
    Output,
    Script,
    Source,
)

__all__ = [
    "GPUS",
    "SINGLE_RUN",
    "TASK_NAME",
    "CustomParams",
    "Data",
    "Descriptor",
    "Distributed",
    "Environment",
    "ExecutionEngine",
    "Framework",
    "Hardware",
    "Info",
    "Kubernetes",
    "MachineLearning",
    "Metric",
    "Output",
    "Probe",
    "ProbeScheme",
    "Recurrence",
    "Script",
    "Server",
    "ServerEnvironment",
    "ServerHardware",
    "Source",
    "Strategy",
    "TaintEffect",
    "TolerationOperator",
    "TomlValue",
    "benchmark_name",
]
