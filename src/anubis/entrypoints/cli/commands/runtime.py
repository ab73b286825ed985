"""``anubis runtime``: the background process that other commands start. Not for people."""

from __future__ import annotations

import os

import click

from anubis.runtime.locking import RuntimeLock
from anubis.settings import loading


@click.command("runtime", hidden=True)
@click.option("--lock", "descriptor", type=int, default=None, help="Descriptor of the held lock.")
def runtime_command(descriptor: int | None) -> None:
    """Serve the runs of this home in the background."""
    settings = loading.load(os.environ)
    if settings.leader_lease:  # a replica of the service carries the runs of this home
        return
    lock = RuntimeLock(settings.runtime_lock)
    if descriptor is not None:
        lock.take_over(descriptor)
    else:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not lock.acquire():
            return
    # Here and not above: one that is not needed must be gone before it has cost anything.
    from anubis.bootstrap import background

    background.main(settings, lock)
