"""A plan on one page: units, their variables and mounts, data, files, and what all of it takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import timedelta

from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, Row, table
from anubis.stages.presentation.plan_shapes import (
    FetchedShape,
    PlacementShape,
    PlanShape,
    ProbeShape,
    ResourcesShape,
    TolerationShape,
    UnitShape,
)
from anubis.stages.presentation.shapes import DemandShape

_UNITS = (
    Column(title="unit"),
    Column(title="runs", shortens_to=24),
    Column(title="image", shortens_to=12, leaves=2),
    Column(title="uses", leaves=3),
    Column(title="ports", leaves=1),
    Column(title="starts after", shortens_to=12, leaves=5),
    Column(title="ready when", leaves=4),
    Column(title="its end"),
)
_VARIABLES = (
    Column(title="variable"),
    Column(title="value", shortens_to=24),
    Column(title="of", shortens_to=12, leaves=1),
)
_MOUNTS = (
    Column(title="mounted at"),
    Column(title="from"),
    Column(title="to"),
    Column(title="of", shortens_to=12, leaves=1),
)
_PLACES = (
    Column(title="runs on"),
    Column(title="with", shortens_to=24),
    Column(title="unit", shortens_to=12, leaves=1),
)
_FETCHES = (
    Column(title="fetched before", shortens_to=24),
    Column(title="as", leaves=2),
    Column(title="checksum", leaves=1),
    Column(title="for"),
)


def page(plan: PlanShape, width: int | None) -> str:
    """All of a plan, cut to a terminal of this width; whole without one."""
    engine = text.printable(plan["engine"])
    parts = [f"on {engine}, asking for {_asked(plan['demand'])}\n"]
    parts.append(_filled(_UNITS, [_unit(unit) for unit in plan["units"]], width))
    parts.append(_filled(_VARIABLES, _variables(plan["units"]), width))
    if places := _places(plan["units"]):
        parts.append(_filled(_PLACES, places, width))
    if mounts := _mounts(plan["units"]):
        parts.append(_filled(_MOUNTS, mounts, width))
    if plan["fetches"]:
        parts.append(_filled(_FETCHES, [_fetch(one) for one in plan["fetches"]], width))
    if plan["files"]:
        files = (f"{name} ({len(content.encode())} B)" for name, content in plan["files"].items())
        parts.append(text.printable(f"written before: {', '.join(files)}") + "\n")
    return "\n".join(parts)


def _filled(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> str:
    """A table without the columns that nobody has anything in."""
    kept = [index for index in range(len(columns)) if any(row[index].text for row in rows)]
    return table(
        [columns[index] for index in kept],
        [[row[index] for index in kept] for row in rows],
        width=width,
    )


def _unit(unit: UnitShape) -> list[Cell]:
    return [
        Cell(text=text.printable(unit["name"]), bold=unit["decides"]),
        Cell(text=text.printable(_command(unit))),
        Cell(text=text.printable(unit["image"] or "")),
        Cell(text=_used(unit["resources"])),
        Cell(text=", ".join(map(str, unit["ports"]))),
        Cell(text=text.printable(", ".join(unit["after"]))),
        Cell(text=text.printable(_ready(unit["readiness"]))),
        Cell(text=_end(unit)),
    ]


def _variables(units: Sequence[UnitShape]) -> list[Row]:
    """What is set for the units, each variable with the same value once."""
    having: dict[tuple[str, str], list[str]] = {}
    for unit in units:
        for variable in unit["environment"].items():
            having.setdefault(variable, []).append(unit["name"])
    return [_row(*variable, _whose(having[variable], units)) for variable in sorted(having)]


def _mounts(units: Sequence[UnitShape]) -> list[Row]:
    having: dict[tuple[str, str, str], list[str]] = {}
    for unit in units:
        for one in unit["mounts"]:
            may = "read" if one["read_only"] else "read and write"
            having.setdefault((one["target"], one["source"], may), []).append(unit["name"])
    return [_row(*mount, _whose(having[mount], units)) for mount in sorted(having)]


def _places(units: Sequence[UnitShape]) -> list[Row]:
    """Where units may run, for engines that choose, each kind of place once."""
    having: dict[tuple[str, str], list[str]] = {}
    for unit in units:
        if placement := unit["placement"]:
            having.setdefault((_nodes(placement), _wishes(placement)), []).append(unit["name"])
    return [_row(*place, _whose(having[place], units)) for place in having]


def _nodes(placement: PlacementShape) -> str:
    parts = [
        placement["instance_type"] or "",
        f"in {placement['zone']}" if placement["zone"] else "",
        *(f"{name}={value}" for name, value in placement["node_selector"].items()),
        "alone" if placement["exclusive"] else "",
    ]
    return ", ".join(filter(None, parts)) or "any node"


def _wishes(placement: PlacementShape) -> str:
    named = {
        "service account": placement["service_account"],
        "pull secrets": " ".join(placement["pull_secrets"]),
        "priority": placement["priority_class"],
        "runtime": placement["runtime_class"],
    }
    parts = [
        *(f"tolerates {_taint(one)}" for one in placement["tolerations"]),
        *(f"{what} {name}" for what, name in named.items() if name),
        *(f"{name}={value}" for name, value in placement["annotations"].items()),
    ]
    return ", ".join(parts)


def _taint(toleration: TolerationShape) -> str:
    value = f"={toleration['value']}" if toleration["operator"] == "Equal" else ""
    effect = f":{toleration['effect']}" if toleration["effect"] else ""
    return f"{toleration['key'] or 'every taint'}{value}{effect}"


def _whose(names: Sequence[str], units: Sequence[UnitShape]) -> str:
    """Which units have it; nothing where there is but one."""
    if len(names) == len(units):
        return "all" if len(units) > 1 else ""
    return ", ".join(names)


def _row(*texts: str) -> list[Cell]:
    return [Cell(text=text.printable(one)) for one in texts]


def _command(unit: UnitShape) -> str:
    """The command on one line; blanks keep their angle brackets, which no shell is to read."""
    words = unit["command"] or ["(the image's own)", *unit["arguments"]]
    return " ".join(word if word.startswith(("<", "(")) else _quoted(word) for word in words)


def _quoted(word: str) -> str:
    return word if "<" in word and " " in word and ">" in word else shlex.quote(word)


def _used(resources: ResourcesShape) -> str:
    memory, requested = resources["memory_bytes"], resources["requested_memory_bytes"]
    parts = [
        f"{resources['cpus']:g} CPUs" if resources["cpus"] is not None else "",
        _least(f"{resources['requested_cpus']:g} CPUs") if resources["requested_cpus"] else "",
        text.size(memory) if memory is not None else "",
        _least(text.size(requested)) if requested else "",
        f"{resources['gpus']} GPUs" if resources["gpus"] else "",
        "all privileges" if resources["privileged"] else "",
        *(f"{name} {_limit(most)}" for name, most in resources["ulimits"].items()),
    ]
    return text.printable(", ".join(filter(None, parts)))


def _least(amount: str) -> str:
    return f"at least {amount}"


def _limit(most: int) -> str:
    return "without limit" if most < 0 else f"up to {most}"


def _asked(demand: DemandShape) -> str:
    parts = [
        f"{demand['cpus']:g} CPUs" if demand["cpus"] else "",
        f"{text.size(demand['memory_bytes'])} of memory" if demand["memory_bytes"] else "",
        f"{demand['gpus']} GPUs" if demand["gpus"] else "",
        "the engine for itself" if demand["exclusive"] else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing in particular"


def _ready(probe: ProbeShape | None) -> str:
    if probe is None:
        return ""
    asked = f"{probe['kind']} {probe['port']}{probe['path']} answers"
    return f"{asked}, every {text.duration(timedelta(seconds=probe['period_seconds']))}"


def _end(unit: UnitShape) -> str:
    if unit["decides"]:
        return "decides"
    return "fails the run" if unit["is_service"] else "counts if it fails"


def _fetch(fetch: FetchedShape) -> list[Cell]:
    return [
        Cell(text=text.printable(fetch["uri"])),
        Cell(text="its content, unpacked" if fetch["unpack"] else "it is"),
        Cell(text=text.printable(fetch["checksum"] or "")),
        Cell(text=text.printable(fetch["field"])),
    ]
