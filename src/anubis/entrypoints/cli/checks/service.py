"""Whether the service that commands ask, if they do, answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from anubis.domain.errors import AnubisError, ServiceUnavailable
from anubis.entrypoints.cli import session
from anubis.entrypoints.cli.checks.finding import Finding, bad, good
from anubis.settings import registering

_ADVICE = "'anubis register' names another, 'anubis unregister' goes back to this machine"


def answers(environ: Mapping[str, str]) -> Finding:
    """One line about the registered service, also if there is none."""
    try:
        connection = registering.in_force(environ)
        if connection is None:
            return good("service", "none registered: commands work on this machine")
        # Here and not above: without a service, no HTTP is needed.
        from anubis.bootstrap import remote

        health, me = asyncio.run(remote.introduced(connection, session.person()))
    except ServiceUnavailable as error:
        return bad("service", str(error), _ADVICE)
    except AnubisError as error:
        return bad("service", str(error), f"check address and token; {_ADVICE}")
    found = f"{connection.endpoint}, anubis {health.version}, as {me.user} ({me.role})"
    return good("service", found)
