"""From what a user wants to what an engine does: the units, and which of them decides.

Pure: everything that comes from outside is in the context. All that the engine cannot do is told
at once, each with the descriptor's field.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from anubis.domain import blanks
from anubis.domain.descriptor import Descriptor, Metric, Strategy
from anubis.domain.errors import UserError
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import SCRIPTS_VARIABLE, Plan, Unit
from anubis.ports.engine import Capabilities
from anubis.stages.planning.expanding import expanded, undefined

BENCHMARK: Final = "benchmark"
"""The unit that runs ``ml.benchmark_code``."""

SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox"})
"""Programs that expand variables and commands themselves."""

PYTHON_VARIABLE: Final = "ANUBIS_PYTHON"
"""Names a Python interpreter that surely exists where the unit runs."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What planning needs to know about the place of the run."""

    directory: str  #: where relative paths start; empty: the engine's default
    environment: Mapping[str, str]  #: what a program gets there before we add anything
    python: str  #: our own interpreter for processes, ``python3`` for images
    script: str = ""  #: the archive of code that was submitted beside the descriptor


def plan(descriptor: Descriptor, capabilities: Capabilities, context: Context) -> Plan:
    """Plan a run.

    Raises UserError if the engine cannot do what the descriptor asks for, naming every field.
    """
    given = {PYTHON_VARIABLE: context.python, **_scripts(descriptor), **descriptor.env.vars}
    variables = {**context.environment, **given}
    words = _words(descriptor)
    obstacles = [
        *_obstacles(descriptor, capabilities),
        *_obstacles_of_command(words, capabilities, variables),
    ]
    if obstacles:
        raise UserError("\n".join(obstacles))
    unit = Unit(
        name=BENCHMARK,
        command=expanded(words, variables),
        environment=given,
        inherited={} if capabilities.needs_image else dict(context.environment),
        directory=context.directory or None,
        image=(descriptor.env.docker_image or None) if capabilities.needs_image else None,
        script=descriptor.ml.script.script if descriptor.ml.script else "",
        cpu_affinity=descriptor.hardware.cpu_affinity,
        niceness=descriptor.hardware.niceness,
    )
    return Plan(
        units=(unit,),
        deciding=BENCHMARK,
        limits=descriptor.limits,
        metrics=tuple(_definition(metric) for metric in descriptor.output.metrics),
    )


def _scripts(descriptor: Descriptor) -> Mapping[str, str]:
    """Where the program finds the code that was submitted beside the descriptor, if any was."""
    return {SCRIPTS_VARIABLE: blanks.SCRIPTS} if descriptor.ml.script else {}


def _definition(metric: Metric) -> MetricDefinition:
    return MetricDefinition(name=metric.name, units=metric.units, pattern=metric.pattern)


def _words(descriptor: Descriptor) -> tuple[str, ...]:
    """The command as a shell would split it; the descriptor's rules made sure that it can be."""
    if descriptor.hardware.strategy is not Strategy.SINGLE_NODE:
        return ()
    return (*_split(descriptor.ml.benchmark_code), *_split(descriptor.ml.args))


def _split(command: str) -> list[str]:
    """Unlike ``shlex`` alone, take a backslash at the end of a line for what it is to a shell."""
    return shlex.split(command.replace("\\\n", ""))


def _obstacles(descriptor: Descriptor, capabilities: Capabilities) -> Iterator[str]:
    yield from _obstacles_of_strategy(descriptor.hardware.strategy, capabilities)
    if capabilities.needs_image and not descriptor.env.docker_image:
        yield f"env.docker_image: the engine '{capabilities.name}' needs an image to run"
    if not descriptor.ml.benchmark_code.strip():
        yield from _obstacles_without_code(descriptor, capabilities)
    if descriptor.ml.script is not None and capabilities.needs_image:
        yield f"ml.script: script mode is not possible yet on the engine '{capabilities.name}'"
    if descriptor.data.sources:
        yield "data.sources: fetching data is not possible yet; let the program read local files"
    if descriptor.server is not None and descriptor.server.models:
        yield "server.models: fetching models is not possible yet"
    if descriptor.hardware.cpu_affinity and not capabilities.honours_affinity:
        yield f"hardware.cpu_affinity: the engine '{capabilities.name}' cannot choose CPUs"


def _obstacles_of_strategy(strategy: Strategy, capabilities: Capabilities) -> Iterator[str]:
    if strategy not in capabilities.strategies:
        possible = ", ".join(sorted(capabilities.strategies)) or "nothing"
        yield (
            f"hardware.strategy: the engine '{capabilities.name}' cannot run '{strategy}', "
            f"only {possible}"
        )
    elif strategy is not Strategy.SINGLE_NODE:
        yield f"hardware.strategy: '{strategy}' is not possible yet, only single_node"


def _obstacles_without_code(descriptor: Descriptor, capabilities: Capabilities) -> Iterator[str]:
    if not capabilities.needs_image:
        yield (
            f"ml.benchmark_code: the engine '{capabilities.name}' runs no images, "
            "so the descriptor must name the command"
        )
    elif descriptor.ml.args.strip():
        yield "ml.args: arguments for the image's own command are not possible yet"


def _obstacles_of_command(
    words: tuple[str, ...], capabilities: Capabilities, variables: Mapping[str, str]
) -> Iterator[str]:
    program = expanded(words[:1], variables)[0] if words else ""
    # What our caller's shell would do is left to a shell the user starts: `bash -c 'echo $(nproc)'`
    # is common in old descriptors, and Kubernetes leaves what it does not know as it is.
    references = () if program.rpartition("/")[2] in SHELLS else undefined(words, variables)
    for reference in references:
        yield (
            f"ml.benchmark_code, ml.args: {reference} names a variable that is not defined; "
            f"set it in [env.vars], or write ${reference} if the text itself is meant"
        )
    if words and not program and not capabilities.needs_image:
        yield "ml.benchmark_code: the command is empty"
