"""The descriptor's grammar: every table and key that may be written, in the order people read.

This is the one place that knows the language. The parser, the JSON Schema and the reference of the
descriptor all follow from it; the model in ``domain.descriptor`` says what the words mean.
"""

from __future__ import annotations

from typing import Final

from anubis.domain import descriptor as model
from anubis.domain.demand import HIGHEST_PRIORITY, LOWEST_PRIORITY
from anubis.domain.plan import Limits
from anubis.stages.descriptor import rules
from anubis.stages.descriptor.clusters import KUBERNETES_TABLE
from anubis.stages.descriptor.kinds import BOOLEAN, FILLED_TEXT, FREE_TABLE, TEXT, choice, integer
from anubis.stages.descriptor.notations import (
    ARCHIVE,
    CHECKSUM,
    CPU_COUNT,
    CPUS,
    DURATION,
    GRACE,
    LABEL_NAME,
    LABEL_VALUE,
    PROCESSES,
    SCHEDULE,
    SIZE,
    ULIMIT_NAME,
    VARIABLE_NAME,
)
from anubis.stages.descriptor.patterns import PATTERN
from anubis.stages.descriptor.probes import ProbeKind, probes_name_a_port
from anubis.stages.descriptor.recurring import SCHEDULE_TABLE, a_schedule_has_a_cron
from anubis.stages.descriptor.shapes import Key, ListOf, MapOf, Table

MOST_GPUS: Final = 1024
"""More than any one machine has; more is a slip of the keyboard."""

MOST_AT_ONCE: Final = 10_000
"""A limit above this limits nothing."""

MOST_SOURCES: Final = 2000
"""Enough for every shard of a large dataset; more belong into a folder or an archive."""

_PORT: Final = integer(1, 65535)
_LABELS: Final = MapOf(key=LABEL_NAME, value=LABEL_VALUE, expected="a table of texts")
_VARIABLES: Final = MapOf(key=VARIABLE_NAME, value=TEXT, expected="a table of texts")
_ULIMITS: Final = MapOf(
    key=ULIMIT_NAME, value=integer(-1, 2**63 - 1), expected="a table of whole numbers"
)

_INFO: Final = Table(
    make=model.Info,
    keys=(
        Key(
            name="description",
            kind=TEXT,
            meaning="What the benchmark measures, for people.",
            is_required=True,
        ),
        Key(
            name="labels",
            kind=_LABELS,
            meaning="Names and values to find and group runs by; task_name names the benchmark.",
        ),
        Key(
            name="scheduling",
            kind=SCHEDULE,
            meaning="Run once (single_run), or again and again by cron.",
        ),
        Key(
            name="execution_engine",
            kind=choice(model.ExecutionEngine),
            meaning="Where to run; default leaves the choice to the installation.",
        ),
        Key(
            name="priority",
            kind=integer(LOWEST_PRIORITY, HIGHEST_PRIORITY),
            meaning="Runs with a higher number leave the queue first.",
        ),
        Key(
            name="task_name",
            kind=TEXT,
            meaning="The benchmark's name.",
            is_deprecated=True,
            instead="labels.task_name",
        ),
    ),
)

_INSTANCE_TYPE: Final = Key(
    name="instance_type",
    kind=TEXT,
    meaning="EC2 API name of the machine; engines that do not choose machines ignore it.",
)
_ZONES: Final = (
    Key(name="aws_zone_id", kind=TEXT, meaning="Zone by id, such as use1-az5."),
    Key(
        name="availability_zone",
        kind=TEXT,
        meaning="Zone by name, such as us-east-1a; wins over aws_zone_id.",
    ),
)
_SHARE: Final = (
    Key(name="cpu_affinity", kind=CPUS, meaning="The CPUs the program may use; none named: all."),
    Key(
        name="niceness",
        kind=integer(-20, 19),
        meaning="Scheduling priority of the program; below zero needs privileges.",
    ),
)

_DEMAND: Final = (
    Key(
        name="cpus",
        kind=CPU_COUNT,
        meaning="CPUs that must be free before the run starts; a container gets no more.",
    ),
    Key(
        name="memory",
        kind=SIZE,
        meaning="Memory that must be free before the run starts; a container gets no more.",
        into="memory_bytes",
    ),
    Key(
        name="gpus",
        kind=integer(0, MOST_GPUS),
        meaning="GPUs that only this run gets; absent: in a cluster those of the instance type.",
    ),
)
_EXCLUSIVE: Final = Key(
    name="exclusive",
    kind=BOOLEAN,
    meaning="Whether nothing else may run meanwhile, in a cluster: on the same node; true if the "
    "engine has a single slot.",
)

_DISTRIBUTED: Final = Table(
    make=model.Distributed,
    keys=(
        Key(name="num_instances", kind=integer(1), meaning="How many machines to use."),
        Key(
            name="processes_per_instance",
            kind=PROCESSES,
            meaning="Processes on each machine; gpus means one for each GPU.",
        ),
    ),
)

_HARDWARE: Final = Table(
    make=model.Hardware,
    keys=(
        _INSTANCE_TYPE,
        Key(
            name="strategy",
            kind=choice(model.Strategy, formerly={"client_server": model.Strategy.INFERENCE}),
            meaning="How the programs are laid out over machines.",
        ),
        *_ZONES,
        *_DEMAND,
        _EXCLUSIVE,
        *_SHARE,
        Key(
            name="distributed",
            kind=_DISTRIBUTED,
            meaning="Size of a distributed run; only read by distributed strategies.",
        ),
    ),
)

_SURROUNDINGS: Final = (
    Key(
        name="docker_image",
        kind=TEXT,
        meaning="The image that holds the program; needed by engines that run containers.",
    ),
    Key(name="privileged", kind=BOOLEAN, meaning="Whether the container gets all privileges."),
    Key(
        name="extended_shm",
        kind=BOOLEAN,
        meaning="Whether the container gets more than 64 MB of shared memory.",
    ),
    Key(
        name="ulimits",
        kind=_ULIMITS,
        meaning="Limits of the container's processes, such as memlock; -1 is no limit.",
    ),
    Key(name="vars", kind=_VARIABLES, meaning="Environment variables of the program."),
)

_ENVIRONMENT: Final = Table(make=model.Environment, keys=_SURROUNDINGS)

_SCRIPT: Final = Table(
    make=model.Script,
    keys=(
        Key(
            name="script",
            kind=ARCHIVE,
            meaning="The archive of code that is submitted with the descriptor.",
            is_required=True,
        ),
    ),
)

_MACHINE_LEARNING: Final = Table(
    make=model.MachineLearning,
    keys=(
        Key(
            name="benchmark_code",
            kind=TEXT,
            meaning="The command to run, without a shell; $(VAR) and ${VAR} are replaced.",
        ),
        Key(name="args", kind=TEXT, meaning="Further arguments of the command."),
        Key(
            name="framework",
            kind=choice(model.Framework),
            meaning="The framework the benchmark is written with.",
        ),
        Key(
            name="framework_version",
            kind=TEXT,
            meaning="The framework's version; needs framework.",
        ),
        Key(name="script", kind=_SCRIPT, meaning="Code that is submitted with the descriptor."),
    ),
    rules=(rules.a_framework_version_has_a_framework,),
)

_SOURCE: Final = Table(
    make=model.Source,
    keys=(
        Key(
            name="src",
            kind=FILLED_TEXT,
            meaning="Where the data is fetched from, as a URL.",
            is_required=True,
            formerly=("uri",),
        ),
        Key(
            name="path",
            kind=FILLED_TEXT,
            meaning="Where the program finds the data.",
            is_required=True,
        ),
        Key(
            name="md5",
            kind=CHECKSUM,
            meaning="Checksum of the content, which lets it be reused; empty if unknown.",
        ),
        Key(
            name="unpack",
            kind=BOOLEAN,
            meaning="Whether it is an archive whose content the program wants.",
        ),
        Key(
            name="id",
            kind=TEXT,
            meaning="Name of it: in ANUBIS_DATA_<ID>, and of the SageMaker channel.",
        ),
    ),
)
_SOURCES: Final = ListOf(item=_SOURCE, expected="a list of sources", most=MOST_SOURCES)

_DATA: Final = Table(
    make=model.Data,
    keys=(Key(name="sources", kind=_SOURCES, meaning="Data to fetch before the run."),),
)

_METRIC: Final = Table(
    make=model.Metric,
    keys=(
        Key(
            name="name",
            kind=FILLED_TEXT,
            meaning="The metric's name; each only once.",
            is_required=True,
        ),
        Key(
            name="units",
            kind=TEXT,
            meaning="What the number counts, such as seconds.",
            is_required=True,
        ),
        Key(
            name="pattern",
            kind=PATTERN,
            meaning="Finds the number in a line of output: the group, or the whole match.",
            is_required=True,
        ),
    ),
)

_OUTPUT: Final = Table(
    make=model.Output,
    keys=(
        Key(
            name="metrics",
            kind=ListOf(item=_METRIC, expected="a list of metrics", unique="name"),
            meaning="Numbers to collect from the output.",
        ),
    ),
)

_SERVER_HARDWARE: Final = Table(
    make=model.ServerHardware, keys=(_INSTANCE_TYPE, *_ZONES, *_DEMAND, *_SHARE)
)

_PROBE: Final = ProbeKind(
    table=Table(
        make=model.Probe,
        keys=(
            Key(
                name="path",
                kind=FILLED_TEXT,
                meaning="What to ask the server for.",
                is_required=True,
            ),
            Key(
                name="scheme",
                kind=choice(model.ProbeScheme, ignore_case=True),
                meaning="How to talk to the server.",
            ),
            Key(
                name="port", kind=_PORT, meaning="Which port; the first of the server's if absent."
            ),
            Key(
                name="initial_delay_seconds",
                kind=integer(0),
                meaning="Seconds from the server's start to the first probe.",
            ),
            Key(name="period_seconds", kind=integer(1), meaning="Seconds between two probes."),
            Key(
                name="timeout_seconds",
                kind=integer(1),
                meaning="Seconds after which a probe counts as failed.",
                formerly=("timout_seconds",),
            ),
            Key(
                name="success_threshold",
                kind=integer(1),
                meaning="Successes in a row that make the server count as well.",
            ),
            Key(
                name="failure_threshold",
                kind=integer(1),
                meaning="Failures in a row that make the server count as unwell.",
            ),
        ),
    )
)

_SERVER_ENVIRONMENT: Final = Table(
    make=model.ServerEnvironment,
    keys=(
        *_SURROUNDINGS,
        Key(
            name="ports",
            kind=ListOf(item=_PORT, expected="a list of ports"),
            meaning="Ports the server listens on.",
            is_required=True,
        ),
        Key(
            name="start_command",
            kind=TEXT,
            meaning="The command that starts the server, without a shell.",
            is_required=True,
        ),
        Key(name="start_command_args", kind=TEXT, meaning="Further arguments of the command."),
        Key(
            name="readiness_probe",
            kind=_PROBE,
            meaning="Tells when the server can be measured.",
        ),
        Key(
            name="liveness_probe",
            kind=_PROBE,
            meaning="Tells whether the server still lives.",
            formerly=("liveliness_probe",),
        ),
    ),
    rules=(probes_name_a_port,),
)

_SERVER: Final = Table(
    make=model.Server,
    keys=(
        Key(name="hardware", kind=_SERVER_HARDWARE, meaning="Where the server runs."),
        Key(
            name="env",
            kind=_SERVER_ENVIRONMENT,
            meaning="What surrounds the server, and how to start it.",
            is_required=True,
        ),
        Key(name="models", kind=_SOURCES, meaning="Models to fetch for the server."),
        Key(name="output", kind=_OUTPUT, meaning="Metrics in the server's output."),
    ),
)

_CUSTOM_PARAMS: Final = Table(
    make=model.CustomParams,
    keys=(
        Key(name="python_version", kind=TEXT, meaning="Python of the SageMaker image."),
        Key(
            name="sagemaker_job_name",
            kind=TEXT,
            meaning="Name of the SageMaker job; the run's id if absent.",
        ),
        Key(name="dashboard", kind=TEXT, meaning="CloudWatch dashboard to create or extend."),
        Key(name="region", kind=TEXT, meaning="AWS region of the dashboard."),
        Key(name="merge", kind=BOOLEAN, meaning="Whether SageMaker merges its metrics."),
        Key(name="hyper_params", kind=FREE_TABLE, meaning="SageMaker hyperparameters."),
    ),
)

_LIMITS: Final = Table(
    make=Limits,
    keys=(
        Key(name="fetching", kind=DURATION, meaning="How long fetching data may take."),
        Key(name="queued", kind=DURATION, meaning="How long to wait for room on the engine."),
        Key(
            name="capacity",
            kind=DURATION,
            meaning="How long to wait until a node of a cluster has room.",
        ),
        Key(
            name="pulling",
            kind=DURATION,
            meaning="How long a node of a cluster may take to bring the image.",
        ),
        Key(name="starting", kind=DURATION, meaning="How long the engine may take to start."),
        Key(
            name="readiness",
            kind=DURATION,
            meaning="How long a server may take until it is ready.",
        ),
        Key(name="running", kind=DURATION, meaning="How long the program may run."),
        Key(name="finishing", kind=DURATION, meaning="How long storing the results may take."),
        Key(
            name="grace",
            kind=GRACE,
            meaning="Time between asking a program to end and ending it by force.",
        ),
        Key(
            name="output_size",
            kind=SIZE,
            meaning="How much a program may write before it is stopped.",
            into="output_bytes",
        ),
        Key(
            name="concurrency",
            kind=integer(1, MOST_AT_ONCE),
            meaning="How many runs of this benchmark may be under way at once.",
        ),
    ),
)

DESCRIPTOR: Final = Table(
    make=model.Descriptor,
    keys=(
        Key(
            name="spec_version",
            kind=TEXT,
            meaning="Version of the descriptor's language: 0.1.0.",
            is_required=True,
        ),
        Key(name="info", kind=_INFO, meaning="What the benchmark is.", is_required=True),
        Key(name="schedule", kind=SCHEDULE_TABLE, meaning="How a benchmark runs again and again."),
        Key(name="hardware", kind=_HARDWARE, meaning="Where the benchmark runs."),
        Key(name="env", kind=_ENVIRONMENT, meaning="What surrounds the program."),
        Key(name="ml", kind=_MACHINE_LEARNING, meaning="The program and what it is written with."),
        Key(name="data", kind=_DATA, meaning="What the program reads."),
        Key(name="output", kind=_OUTPUT, meaning="What to collect from the program."),
        Key(name="server", kind=_SERVER, meaning="The server an inference benchmark measures."),
        Key(
            name="kubernetes",
            kind=KUBERNETES_TABLE,
            meaning="Which nodes of a cluster; other engines ignore it.",
        ),
        Key(name="limits", kind=_LIMITS, meaning="How long and how much everything may take."),
        Key(name="custom_params", kind=_CUSTOM_PARAMS, meaning="Settings of single engines."),
    ),
    rules=(
        rules.inference_has_a_server,
        rules.commands_are_well_quoted,
        a_schedule_has_a_cron,
    ),
)
