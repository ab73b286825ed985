"""One program as the descriptor asks for it, and the unit that it becomes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from anubis.domain.descriptor import Descriptor, Environment, ServerEnvironment
from anubis.domain.plan import SCRIPTS_VARIABLE, Placement, Resources, Unit
from anubis.stages.planning import commands, images, machines, paths, sources
from anubis.stages.planning.expanding import expanded, undefined
from anubis.stages.planning.machines import Machine
from anubis.stages.planning.place import Place
from anubis.stages.planning.sources import Placed


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """Where in the descriptor a program is described, for those who must mend it."""

    command: str
    arguments: str
    image: str
    affinity: str
    niceness: str
    variables: str
    ulimits: str


BENCHMARK_FIELDS: Final = Fields(
    command="ml.benchmark_code",
    arguments="ml.args",
    image="env.docker_image",
    affinity="hardware.cpu_affinity",
    niceness="hardware.niceness",
    variables="env.vars",
    ulimits="env.ulimits",
)
SERVER_FIELDS: Final = Fields(
    command="server.env.start_command",
    arguments="server.env.start_command_args",
    image="server.env.docker_image",
    affinity="server.hardware.cpu_affinity",
    niceness="server.hardware.niceness",
    variables="server.env.vars",
    ulimits="server.env.ulimits",
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What a unit runs, before anything is filled in."""

    name: str  #: of the unit
    fields: Fields
    launched_by: tuple[str, ...] = ()  #: what we put in front of the command
    command: tuple[str, ...] = ()  #: empty: what the image does by itself
    arguments: tuple[str, ...] = ()
    image: str
    variables: Mapping[str, str]  #: from the descriptor
    told: Mapping[str, str] = dataclasses.field(default_factory=dict)  #: what its strategy adds
    resources: Resources
    placement: Placement  #: for engines that have many machines
    cpu_affinity: tuple[int, ...]
    niceness: int
    data: tuple[Placed, ...] = ()

    def given(self, place: Place) -> Mapping[str, str]:
        """All variables that we set; what the descriptor says wins."""
        real = self.real_paths(place)
        written = {name: paths.replaced(value, real) for name, value in self.variables.items()}
        data = sources.variables(self.data, isolates=place.isolates)
        return {**place.variables, **data, **self.told, **written}

    def words(self, place: Place) -> tuple[str, ...]:
        """Command and arguments, where variables are not replaced yet."""
        real = self.real_paths(place)
        written = (*self.launched_by, *self.command, *self.arguments)
        return tuple(paths.replaced(word, real) for word in written)

    def real_paths(self, place: Place) -> Mapping[str, str]:
        """What its texts call by another path than it has here."""
        return {**place.real_paths, **sources.real_paths(self.data, isolates=place.isolates)}


def benchmark(descriptor: Descriptor, place: Place, name: str, data: tuple[Placed, ...]) -> Program:
    """The program that ``[ml]`` describes. Raises UserError if it cannot be split into words."""
    return dataclasses.replace(
        surrounded(descriptor, place, name, data),
        command=commands.split(descriptor.ml.benchmark_code),
        arguments=commands.split(descriptor.ml.args),
    )


def surrounded(
    descriptor: Descriptor, place: Place, name: str, data: tuple[Placed, ...]
) -> Program:
    """The same without a command: image, variables, hardware and data."""
    hardware = descriptor.hardware
    return Program(
        name=name,
        fields=BENCHMARK_FIELDS,
        image=descriptor.env.docker_image,
        variables=descriptor.env.vars,
        resources=resources(descriptor.env, hardware, place),
        placement=machines.placement(descriptor, hardware),
        cpu_affinity=hardware.cpu_affinity,
        niceness=hardware.niceness,
        data=data,
    )


def resources(env: Environment | ServerEnvironment, machine: Machine, place: Place) -> Resources:
    """What a container of this environment may use of one machine, and asks for."""
    asked = machines.request(machine) if place.has_machines else machines.Request()
    return dataclasses.replace(
        modest(env),
        cpus=machine.cpus,
        memory_bytes=machine.memory_bytes,
        requested_cpus=asked.cpus,
        requested_memory_bytes=asked.memory_bytes,
        gpus=machine.gpus or 0,
    )


def modest(env: Environment | ServerEnvironment) -> Resources:
    """The same for a program that does little."""
    return Resources(
        extended_shm=env.extended_shm,
        privileged=env.privileged,
        ulimits=dict(env.ulimits),
    )


def unit(program: Program, place: Place) -> Unit:
    """The unit that a program becomes in this place."""
    given = program.given(place)
    words = expanded(program.words(place), {**place.surroundings, **given})
    return Unit(
        name=program.name,
        command=words if program.command else (),
        arguments=() if program.command else words,
        environment=given,
        inherited=dict(place.surroundings),
        directory=place.directory,
        image=program.image if place.has_images else None,
        script=place.script,
        cpu_affinity=program.cpu_affinity,
        niceness=program.niceness,
        mounts=(*place.script_mounts, *sources.mounts(program.data)) if place.isolates else (),
        resources=program.resources,
        placement=program.placement if place.has_machines else Placement(),
    )


def obstacles(programs: Sequence[Program], place: Place) -> Iterator[str]:
    """All that keeps programs from running in this place, each with its field, once."""
    every = (line for program in programs for line in _obstacles(program, place))
    yield from dict.fromkeys(every)


def _obstacles(program: Program, place: Place) -> Iterator[str]:
    engine, fields = place.capabilities, program.fields
    yield from _obstacles_of_image(program, place)
    if not place.has_images and not program.command:
        yield (
            f"{fields.command}: the engine '{engine.name}' runs no images, "
            "so the descriptor must name the command"
        )
    if program.cpu_affinity and not engine.honours_affinity:
        yield f"{fields.affinity}: the engine '{engine.name}' cannot choose CPUs"
    if program.niceness and not engine.honours_niceness:
        yield f"{fields.niceness}: the engine '{engine.name}' cannot set it; limit the CPUs instead"
    if program.resources.ulimits and not engine.honours_ulimits:
        yield (
            f"{fields.ulimits}: the engine '{engine.name}' cannot set limits of processes; remove "
            "them, and set them where its nodes start containers"
        )
    if not engine.takes_any_variable:
        yield from _obstacles_of_variables(program, place)
    yield from _obstacles_of_words(program, place)


def _obstacles_of_image(program: Program, place: Place) -> Iterator[str]:
    if not place.has_images:
        return
    field = program.fields.image
    if not program.image:
        yield f"{field}: the engine '{place.capabilities.name}' needs an image to run"
    elif wrong := images.wrong(program.image):
        yield f"{field}: {wrong}"


def _obstacles_of_variables(program: Program, place: Place) -> Iterator[str]:
    for name in program.variables:
        if not (name.isascii() and name.isprintable()):
            yield (
                f"{program.fields.variables}: found the name {name!r}, expected printable ASCII: "
                f"the engine '{place.capabilities.name}' takes no other"
            )


def _obstacles_of_words(program: Program, place: Place) -> Iterator[str]:
    variables = {**place.surroundings, **program.given(place)}
    first = "".join(expanded(program.command[:1], variables))
    # What our caller's shell would do is left to a shell the user starts: `bash -c 'echo $(nproc)'`
    # is common in old descriptors, and Kubernetes leaves what it does not know as it is.
    is_shell = commands.name_of(first) in commands.SHELLS
    fields = program.fields
    for reference in () if is_shell else undefined(program.words(place), variables):
        yield (
            f"{fields.command}, {fields.arguments}: {reference} names a variable that is not "
            f"defined; {_remedy(reference, fields)}"
        )
    if program.command and not first:
        yield f"{fields.command}: the command is empty"


def _remedy(reference: str, fields: Fields) -> str:
    if reference[2:-1] == SCRIPTS_VARIABLE:
        return "it is there for runs whose code is submitted with them: add --script PATH"
    return f"set it in [{fields.variables}], or write ${reference} if the text itself is meant"
