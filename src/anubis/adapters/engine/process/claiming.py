"""Say to all homes of this machine that a port is spoken for, before anybody listens there.

A server may load its model for a minute before it listens. Meanwhile the port looks free, and a run
of another home, even of another person, would be given the same. A claim is an abstract socket that
is named after the port: like ports, names belong to the network namespace, and the kernel gives
each to one process and takes it back when that process ends. Nothing is ever sent there.
"""

from __future__ import annotations

import contextlib
import socket

from anubis.domain.run import RunId

NAME = "\0anubis-port-{}"


class Claims:
    """The ports that one engine has spoken for, each for a run."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[RunId, socket.socket]] = {}

    def take(self, number: int, run_id: RunId) -> bool:
        """Whether the port is this run's from now on; not if another engine spoke for it. One of
        ours passes from run to run: who has it among our own is known elsewhere.
        """
        if number in self._held:
            self._held[number] = run_id, self._held[number][1]
            return True
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(NAME.format(number))
        except OSError:
            claim.close()
            return False
        self._held[number] = run_id, claim
        return True

    def release(self, run_id: RunId) -> None:
        """Give back what a run had."""
        for number, (owner, claim) in list(self._held.items()):
            if owner == run_id:
                claim.close()
                del self._held[number]

    def close(self) -> None:
        """Give back everything. Servers that listen by now need no claim."""
        with contextlib.ExitStack() as stack:
            for _, claim in self._held.values():
                stack.enter_context(claim)
        self._held.clear()
