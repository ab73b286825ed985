"""Why a plan cannot become objects of Kubernetes, in words that say what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from anubis.adapters.engine.kubernetes import naming
from anubis.adapters.engine.kubernetes.manifests import carrying, volumes
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Brought
from anubis.domain import blanks
from anubis.domain.plan import Plan, Unit

MOST_PER_OBJECT: Final = 1024**2
"""The database of a cluster takes 1.5 MiB at once."""

_VARIABLE: Final = re.compile(r"[ -<>-~]+")
_NOTHING: Final = Brought()


def obstacles(plan: Plan, brought: Brought = _NOTHING) -> list[str]:
    """What is in the way; nothing if the plan can run on Kubernetes."""
    found = [wrong for unit in plan.units for wrong in _of_unit(unit)]
    return [*found, *carrying.obstacles(brought)]


def _of_unit(unit: Unit) -> Iterator[str]:
    name = unit.name
    if unit.image is None:
        yield f"the unit {name} names no image, and the kubernetes engine needs one"
    if not naming.is_host_name(name):
        yield (
            f"unit: found the name {name!r}, expected at most {naming.LONGEST_UNIT} small letters, "
            "digits and dashes, of which a letter is first and no dash last"
        )
    if unit.niceness:
        yield "the kubernetes engine cannot set hardware.niceness; leave it out, or limit the CPUs"
    if unit.cpu_affinity:
        yield "the kubernetes engine cannot set hardware.cpu_affinity; ask for whole CPUs instead"
    if unit.resources.ulimits:
        limits = ", ".join(sorted(unit.resources.ulimits))
        yield (
            f"env.ulimits: found {limits}, which pods cannot have; leave them out, or set them for "
            "all containers of the machines"
        )
    yield from _of_variables(unit)
    yield from _of_mounts(unit)


def _of_variables(unit: Unit) -> Iterator[str]:
    for name in unit.environment:
        if not _VARIABLE.fullmatch(name):
            yield f"env.vars: found the name {name!r}, expected printable ASCII without '='"


def _of_mounts(unit: Unit) -> Iterator[str]:
    known = {blanks.SCRIPTS, blanks.FILES}
    for mount in unit.mounts:
        if mount.target == volumes.SHARED_MEMORY and unit.resources.extended_shm:
            yield (
                f"found data at {mount.target}, where the shared memory is; expected another path, "
                "or env.extended_shm = false"
            )
        if mount.source not in known and volumes.fetch_number(mount) is None:
            yield (
                f"{mount.source}, to be mounted at {mount.target}, is a path of this machine, which"
                " pods do not see"
            )


def too_large(objects: Sequence[Manifest]) -> list[str]:
    """Which objects the cluster would not take."""
    sizes = {
        f"{one['kind']} {_name(one)}": len(json.dumps(one, ensure_ascii=False).encode())
        for one in objects
    }
    return [
        f"{name}: found {size / 1024**2:.1f} MiB of commands, variables and files, expected at "
        f"most {MOST_PER_OBJECT // 1024**2} MiB: put long texts into code that is submitted with "
        "the descriptor"
        for name, size in sizes.items()
        if size > MOST_PER_OBJECT
    ]


def _name(one: Manifest) -> str:
    metadata = one["metadata"]
    return str(metadata["name"]) if isinstance(metadata, dict) else ""
