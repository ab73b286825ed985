"""``horovod``: a launcher that calls ``mpirun``, and workers that its ranks run on.

Where units share a machine, its own slots are the workers. Where each unit has a host name, workers
are units that run an ssh server, as Open MPI wants it; keys are made for each run.

All that ``mpirun`` must know is in variables and files, so that one that the user calls knows it
too. The names are those of Open MPI 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from anubis.domain import blanks
from anubis.domain.errors import UserError
from anubis.domain.plan import Probe, ProbeKind, Resources, Unit
from anubis.stages.planning import commands, machines, paths, programs, sizing
from anubis.stages.planning.expanding import expanded
from anubis.stages.planning.layout import Draft, Layout, Task, definitions
from anubis.stages.planning.place import FILES_FOLDER
from anubis.stages.planning.programs import Program

LAUNCHER: Final = "launcher"
WORKER: Final = "worker"

LAUNCHERS: Final = frozenset(
    {"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "horovodrun"}
)
"""Programs that start ranks themselves."""

HOSTFILE_VARIABLE: Final = "ANUBIS_HOSTFILE"
"""Where the list of hosts is, for launchers that must be told."""

PROCESSES_VARIABLE: Final = "ANUBIS_PROCESSES"
"""How many ranks there are in all."""

SSH_PORT: Final = 2222
"""Not 22, which needs privileges and may be in use by the image's own server."""

ENTRYPOINT: Final = "entrypoint.sh"
HOSTFILE: Final = "hostfile"

_SSHD_CONFIG: Final = f"""\
Port {SSH_PORT}
HostKey {FILES_FOLDER}/keys/host
AuthorizedKeysFile {FILES_FOLDER}/keys/id.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
ForceCommand exec sh -c '. ~/.ssh/anubis-environment; eval "$SSH_ORIGINAL_COMMAND"'
StrictModes no
UsePAM no
PidFile none
MaxStartups 1000
LogLevel FATAL
"""
"""A session of ssh does not have the variables of its container by itself, such as the PATH of the
image. Ranks need them; the server's own way to give them ends a value with its line.

The keys belong to whoever runs Anubis, which strict modes would refuse. To be probed is an error
to a server of ssh, which would be told as output of the run."""

_SSH_CONFIG: Final = f"""\
Host *
    Port {SSH_PORT}
    IdentityFile {FILES_FOLDER}/keys/id
    IdentitiesOnly yes
    BatchMode yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""
"""Workers are only reached over the network of their own run, so that nobody can stand between."""

_SSHD: Final = (
    "sh",
    "-c",
    (
        "mkdir -p /run/sshd ~/.ssh && (unset PWD OLDPWD; export -p) > ~/.ssh/anubis-environment && "
        f'exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f {FILES_FOLDER}/sshd_config'
    ),
)
"""Where a session is, it knows by itself."""

_READINESS: Final = Probe(
    kind=ProbeKind.TCP, port=SSH_PORT, period=timedelta(seconds=0.5), timeout=timedelta(seconds=1)
)

_EVERYWHERE: Final = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # [1,3]<stdout>: before each line, by which ranks are told apart.
    "OMPI_MCA_orte_tag_output": "1",
    # Slots are what the descriptor says, not what the machine has.
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    # Bound ranks of two runs would share the first cores, while the others idle.
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
_OVER_SSH: Final = {
    "OMPI_MCA_plm_rsh_agent": "ssh",
    "OMPI_MCA_plm_rsh_args": f"-F {FILES_FOLDER}/ssh_config",
    # Containers may not read each other's memory, and Open MPI would say so in every line.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}


def draft(task: Task) -> Draft:
    """The launcher; workers have the same image and hardware."""
    wrong = tuple(sizing.obstacles(task.descriptor, task.place))
    try:
        return Draft(programs=(_launcher(task),), obstacles=wrong)
    except UserError as error:
        return Draft(obstacles=(*wrong, f"ml.benchmark_code, ml.args: {error}"))


def layout(task: Task) -> Layout:
    """The launcher decides; workers live as long as it does."""
    size = sizing.size(task.descriptor)
    names = [f"{WORKER}-{index}" for index in range(size.instances)] if task.place.isolates else []
    launcher = programs.unit(_launcher(task), task.place)
    launcher = dataclasses.replace(
        launcher,
        mounts=(*launcher.mounts, *task.place.file_mounts),
        after=tuple(names),
        tags_ranks=True,
    )
    return Layout(
        units=(*(_worker(task, name) for name in names), launcher),
        deciding=LAUNCHER,
        metrics=tuple(definitions(task.descriptor.output)),
        files=_files(task, names),
        needs_keys=bool(names),
    )


def _launcher(task: Task) -> Program:
    launched_by, command, arguments = _words(task)
    program = _surrounded(task, LAUNCHER)
    return dataclasses.replace(
        program,
        launched_by=launched_by,
        command=command,
        arguments=arguments,
        told=_told(task),
        resources=_resources(task, program.resources),
        placement=machines.beside_own(program.placement),
    )


def _surrounded(task: Task, name: str) -> Program:
    return programs.surrounded(task.descriptor, task.place, name, task.data)


def _resources(task: Task, machine: Resources) -> Resources:
    """The launcher does little, unless the ranks are processes of its own machine."""
    if task.place.isolates:
        return programs.modest(task.descriptor.env)
    return sizing.share(machine, times=sizing.size(task.descriptor).instances)


def _words(task: Task) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What the launcher runs: a script, a launcher of the user's choice, or ``mpirun`` by us, with
    the user's command and arguments behind it.
    """
    ml = task.descriptor.ml
    if commands.is_script(ml.benchmark_code):
        return (), (*commands.interpreter(_script(task)), f"{task.place.files}/{ENTRYPOINT}"), ()
    command, arguments = commands.split(ml.benchmark_code), commands.split(ml.args)
    first = "".join(expanded(command[:1], task.descriptor.env.vars))
    if not command or commands.name_of(first) in LAUNCHERS:
        return (), command, arguments
    ranks = str(sizing.size(task.descriptor).total)
    return ("mpirun", "-np", ranks), command, arguments


def _script(task: Task) -> str:
    """Code and arguments are one text, as in the original, but never one word."""
    ml = task.descriptor.ml
    gap = "" if ml.benchmark_code[-1:].isspace() else " "
    text = commands.script(ml.benchmark_code + (gap + ml.args if ml.args else ""))
    program = _surrounded(task, LAUNCHER)
    return paths.replaced(text, program.real_paths(task.place))


def _told(task: Task) -> Mapping[str, str]:
    extent = _extent(task)
    return {
        **extent,
        "OMPI_MCA_orte_default_hostfile": extent[HOSTFILE_VARIABLE],
        **_EVERYWHERE,
        **(_OVER_SSH if task.place.isolates else {}),
    }


def _extent(task: Task) -> Mapping[str, str]:
    """How many ranks there are, and where; ranks may want to know it as well as their launcher."""
    return {
        HOSTFILE_VARIABLE: f"{task.place.files}/{HOSTFILE}",
        PROCESSES_VARIABLE: str(sizing.size(task.descriptor).total),
    }


def _files(task: Task, workers: list[str]) -> Mapping[str, str]:
    size = sizing.size(task.descriptor)
    # An engine that brings files knows where its units are when it writes them. Elsewhere they are
    # written before: there, one that isolates makes the names of units known to each other.
    hosts = [blanks.host(name) if task.place.brings else name for name in workers]
    slots = dict.fromkeys(hosts, size.processes) or {"localhost": size.total}
    files = {HOSTFILE: "".join(f"{host} slots={count}\n" for host, count in slots.items())}
    if workers:
        files |= {"ssh_config": _SSH_CONFIG, "sshd_config": _SSHD_CONFIG}
    if commands.is_script(task.descriptor.ml.benchmark_code):
        files[ENTRYPOINT] = _script(task)
    return files


def _worker(task: Task, name: str) -> Unit:
    program = _surrounded(task, name)
    unit = programs.unit(dataclasses.replace(program, told=_extent(task)), task.place)
    return dataclasses.replace(
        unit,
        command=_SSHD,
        mounts=(*unit.mounts, *task.place.file_mounts),
        ports=(SSH_PORT,),
        readiness=_READINESS,
        is_service=True,
    )
