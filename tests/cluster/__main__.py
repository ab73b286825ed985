"""``python3 -m tests.cluster``: a real Kubernetes on this machine, up and down."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from tests import docker_images, own_image
from tests.cluster import (
    building,
    control,
    kind,
    layout,
    lifecycle,
    locking,
    mpi_operator,
    second_node,
    simulating,
)
from tests.cluster.layout import ClusterTrouble, Layout
from tests.cluster.saying import say

COMPONENTS = {component.name: component for component in building.ALL}


class Extra(Protocol):
    """What a cluster has only if somebody turns it on."""

    def up(self, place: Layout) -> None:
        """Turn it on."""
        ...

    def down(self, place: Layout) -> None:
        """Turn it off."""
        ...


EXTRAS: Mapping[str, tuple[str, Extra]] = {
    "kwok": ("nodes on paper", simulating),
    "mpi-operator": ("MPIJobs", mpi_operator),
    "second-node": ("a second real node", second_node),
}


def main() -> int:
    """Do what the command line says; the exit code."""
    words = sys.argv[1:]
    # Everything after "--" belongs to somebody else, who may have the same options.
    command = words[words.index("--") + 1 :] if "--" in words else []
    told = _parser().parse_args(words[: words.index("--")] if "--" in words else words)
    place = layout.layout()
    try:
        return _do(place, told, command)
    except (ClusterTrouble, docker_images.Unavailable) as error:
        say(str(error))
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.cluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="start the cluster, or what is missing of it")
    up.add_argument("--without-kind", action="store_true", help="even where kind is installed")
    verbs.add_parser("down", help="end it, and give the machine back")
    verbs.add_parser("status", help="what runs")
    build = verbs.add_parser("build", help="build programs, unless that is done")
    build.add_argument("component", nargs="*", choices=[[], *COMPONENTS], help="all, if none")
    load = verbs.add_parser("load", help="copy images from Docker into the cluster")
    load.add_argument("image", nargs="*", help="those that tests need, if none")
    verbs.add_parser("run", help="run a command (after --) with a cluster, ended if it was not up")
    for name, (what, _) in EXTRAS.items():
        extra = verbs.add_parser(name, help=f"turn {what} on or off")
        extra.add_argument("turn", choices=["up", "down"])
    return parser


def _do(place: Layout, told: argparse.Namespace, command: Sequence[str]) -> int:
    match told.verb:
        case "up":
            lifecycle.up(place, with_kind=not told.without_kind)
        case "down":
            lifecycle.down(place)
        case "status":
            return _show_status(place)
        case "build":
            names = told.component or list(COMPONENTS)
            building.build(place, [COMPONENTS[name] for name in names])
        case "load":
            _load(place, told.image)
        case "run":
            return _run(place, command)
        case extra if extra in EXTRAS:
            _turn(place, told.verb, told.turn)
    return 0


def _show_status(place: Layout) -> int:
    whole = lifecycle.is_whole(place)
    if place.kind.exists():
        say(f"a cluster of kind named {kind.NAME}")
    else:
        for name, lives in lifecycle.status(place).items():
            say(f"{name}: {'runs' if lives else '-'}")
    say(f"the cluster {'answers' if whole else 'does not answer'}; kubeconfig {place.kubeconfig}")
    return 0 if whole else 1


def _load(place: Layout, names: Sequence[str]) -> None:
    wanted = list(names)
    if not wanted:
        wanted = [docker_images.busybox(), docker_images.python_mpi(), own_image.make()]
    for name in lifecycle.load(place, wanted):
        say(f"{name} is in the cluster now")


def _run(place: Layout, command: Sequence[str]) -> int:
    # As at an interrupt: what was started here is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = control.is_here() and lifecycle.up(place)
    try:
        if control.is_here():
            building.build(place, building.ALL)
            _load(place, [])
        return subprocess.run(command, check=False).returncode
    finally:
        if started:
            lifecycle.down(place)


def _turn(place: Layout, what: str, turn: str) -> None:
    _, extra = EXTRAS[what]
    with locking.changing(place):
        extra.up(place) if turn == "up" else extra.down(place)


if __name__ == "__main__":
    sys.exit(main())
