"""Whether those who ask may.

A route names the least role it needs: ``Depends(needs(Role.SUBMITTER))`` gives it the principal.
Where somebody's run or schedule is changed, it calls ``must_own``; what was done, it puts on record
with ``note``. Who asks is found out before, by ``identifying``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Request

from anubis.bootstrap.service import Service
from anubis.domain.access import AuditEntry, Principal, Role
from anubis.domain.errors import NotAllowed

LONGEST_TARGET = 200
"""Characters of a path that are put on record: it is the asker's choice."""


def service(request: Request) -> Service:
    """The service that answers this request."""
    found = request.app.state.service
    assert isinstance(found, Service)
    return found


async def principal(request: Request) -> Principal:
    """Who asks."""
    found = request.state.principal
    assert isinstance(found, Principal), "only what is open to all has no principal"
    return found


def needs(role: Role) -> Callable[[Request], Awaitable[Principal]]:
    """A dependency that gives the principal if they have this role, and refuses others."""

    async def needed(request: Request) -> Principal:
        who = await principal(request)
        if not who.role.includes(role):
            text = f"this needs the role {role}; your token has {who.role}"
            action = f"{request.method} {request.scope['route'].path}"
            target = request.url.path[:LONGEST_TARGET]
            await note(request, action, target, allowed=False, detail=text)
            raise NotAllowed(text)
        return who

    return needed


async def must_own(request: Request, owner: str, action: str, target: str) -> None:
    """Raise NotAllowed, and put it on record, unless the principal may change what ``owner`` has.

    ``action`` and ``target`` are those of ``note``.
    """
    who = await principal(request)
    if not who.may_change(owner):
        text = f"this belongs to {owner}: only they and admins may do that"
        await note(request, action, target, allowed=False, detail=text)
        raise NotAllowed(text)


async def note(
    request: Request, action: str, target: str = "", *, allowed: bool = True, detail: str = ""
) -> None:
    """Put on record what the principal did, or was refused.

    ``action`` is a short noun and verb (``run.submit``), ``target`` the id of what it was done to,
    ``detail`` a sentence that never holds a secret.
    """
    who = await principal(request)
    here = service(request)
    entry = AuditEntry(
        at=here.application.clock.now(),
        user=who.user,
        token=who.token,
        action=action,
        target=target,
        allowed=allowed,
        detail=detail,
    )
    await here.access.note(entry)
