"""``anubis doctor``: what is wrong with this machine, and what to do about it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence

import click

from anubis.bootstrap import embedded
from anubis.bootstrap.application import Application
from anubis.bootstrap.local import LocalApplication
from anubis.domain.errors import AnubisError
from anubis.entrypoints.cli import exits, options, session, terminal
from anubis.entrypoints.cli.checks import docker, home, kubernetes, libraries, machine, service
from anubis.entrypoints.cli.checks.finding import Finding, Level
from anubis.entrypoints.cli.rendering import findings
from anubis.settings import loading
from anubis.stages.presentation import shapes


@click.command("doctor")
@click.option("--clean", is_flag=True, help="Remove what crashes left behind.")
@options.as_json
@click.pass_obj
def doctor_command(opener: session.Opener | None, clean: bool, as_json: bool) -> int:
    """Check this machine and say what to mend.

    Each line is ok, warn (works, but measurements or comfort may suffer) or fail. The exit code
    is 3 if something fails.
    """
    found = [*_machine(), *_home(opener, clean=clean), service.answers(os.environ)]
    if as_json:
        terminal.echo(shapes.line({"findings": [findings.shape(one) for one in found]}))
    else:
        terminal.echo(findings.report(found, terminal.width()))
    return exits.UNREACHABLE if any(one.level is Level.FAIL for one in found) else 0


def _machine() -> Sequence[Finding]:
    return [
        machine.python(sys.version_info[:3]),
        libraries.sqlite(),
        *libraries.importable(),
        machine.governor(),
        machine.load(os.getloadavg()[0], len(os.sched_getaffinity(0))),
        machine.clock(time.time()),
        machine.git(),
        machine.gpus(),
    ]


def _home(opener: session.Opener | None, *, clean: bool) -> Sequence[Finding]:
    place = loading.home(os.environ)
    outside = [home.writable(place), home.space(place)]
    if any(one.level is Level.FAIL for one in outside):
        return outside  # opening it would only fail in other words
    settings, configuration = home.settings(place, os.environ)

    def embedded_here() -> contextlib.AbstractAsyncContextManager[LocalApplication]:
        return embedded.application(settings)

    async def inside(application: Application) -> Sequence[Finding]:
        assert isinstance(application, LocalApplication), "the home is on this machine"
        # At once: one that does not answer is asked by two of them.
        return await asyncio.gather(
            docker.answers(application.settings),
            kubernetes.answers(application.settings),
            home.runtime(application),
            home.leftovers(application, clean=clean),
        )

    try:
        return [*outside, configuration, *session.call(opener or embedded_here, inside)]
    except AnubisError as error:
        return [*outside, configuration, home.store(settings, error)]
