"""Ports for units that share the ports of this machine.

A unit gets the port it declares if nobody has it, else another one. What a run was given is written
down before its first unit starts, so that all its units, and a service that was started again, know
the same. It is given for as long as a unit of the run may live. Other homes of this machine respect
it too: see ``claiming``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from anubis.adapters.engine.process import claiming, directories
from anubis.adapters.engine.process.guardian import files
from anubis.domain import blanks
from anubis.domain.errors import EngineUnavailable
from anubis.domain.plan import Plan
from anubis.domain.run import RunId

HOST = "127.0.0.1"
FILE = "ports.json"

SPARE = range(20_000, 65_536)
"""Where we look for a port when the declared one is taken: above what services usually have."""

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_EPHEMERAL = range(32_768, 61_000)
"""Linux gives these to whoever connects to something; a port of ours could be taken any moment."""

Ports = Mapping[str, int]
"""The port of each blank: ``port server 8080``."""


class PortBook:
    """Who has which port, below one engine's root."""

    def __init__(self, places: directories.Directories) -> None:
        self._places = places
        self._claims = claiming.Claims()

    def close(self) -> None:
        """Speak for no port any more. What runs were given stays written down."""
        self._claims.close()

    def release(self, run_id: RunId) -> None:
        """Let other homes have the ports of a run that is over."""
        self._claims.release(run_id)

    def known(self, run_id: RunId) -> Ports:
        """What a run was given; nothing if it was given nothing."""
        return _read(self._places.run(run_id))

    def allot(self, run_id: RunId, plan: Plan) -> Ports:
        """A port for each that a unit of the plan declares, the same whenever asked. May block.

        Raises EngineUnavailable if the machine has no free port, OSError if the disk does not
        take it.
        """
        wanted = {
            blanks.name(blanks.port(unit.name, number)): number
            for unit in plan.units
            for number in unit.ports
        }
        if wanted.keys() <= self.known(run_id).keys():
            return self.known(run_id)
        self._places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(self._places.root):
            return self._extend(run_id, wanted)

    def _extend(self, run_id: RunId, wanted: Mapping[str, int]) -> Ports:
        given = dict(self.known(run_id))
        taken = {*self._taken(run_id), *given.values()}
        for name, number in wanted.items():
            if name not in given:
                given[name] = _free(number, taken, lambda n: self._claims.take(n, run_id))
                taken.add(given[name])
        directory = self._places.run(run_id)
        directory.mkdir(mode=0o700, exist_ok=True)
        files.write_durably(str(directory), FILE, json.dumps(given).encode(), sync=False)
        return given

    def _taken(self, besides: RunId) -> Iterator[int]:
        """What other runs have that may still want it."""
        for run_id in self._places.runs():
            if run_id == besides:
                continue
            given = self.known(run_id).values()
            if given and self._may_live(run_id):
                yield from given

    def _may_live(self, run_id: RunId) -> bool:
        """Whether a unit goes on, or none was started yet."""
        units = [place for place in self._places.of(run_id) if directories.is_used(place)]
        return not units or any(not files.has_ended(str(unit)) for unit in units)


def _read(directory: Path) -> Ports:
    content = files.read_json(str(directory), FILE) or {}
    return {name: number for name, number in content.items() if isinstance(number, int)}


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Nobody else gives out ports meanwhile, in this process or another."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _free(declared: int, taken: set[int], claim: Callable[[int], bool]) -> int:
    for number in (declared, *_spare()):
        if number not in taken and is_free(number) and claim(number):
            return number
    raise EngineUnavailable("this machine has no free port left")


def _spare() -> Iterable[int]:
    """In no order, so that two homes seldom hit upon the same one in the same moment."""
    ephemeral = _ephemeral()
    outside = [number for number in SPARE if number not in ephemeral] or list(SPARE)
    return random.sample(outside, len(outside))


def _ephemeral() -> range:
    try:
        lowest, highest = map(int, EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        return USUAL_EPHEMERAL
    return range(lowest, highest + 1)


def is_free(number: int) -> bool:
    """Whether a server could listen there now, at whichever address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        # As servers do: what a former one's connections left behind is no obstacle.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", number))
        except (OSError, OverflowError):  # also one that only root may have
            return False
    return True
