"""The routes of the original wire. Each reads, calls and answers; nothing is decided here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from anubis.bootstrap.service import Service
from anubis.domain.access import Principal, Role
from anubis.domain.errors import AnubisError
from anubis.domain.run import RunId
from anubis.entrypoints.api import access
from anubis.entrypoints.api.legacy import (
    canceling,
    finding,
    forms,
    keeping,
    pages,
    paging,
    reading,
    refusing,
    results,
    statuses,
    submitting,
    tool,
)

JSON: Final = "application/json; charset=utf-8"
LARGEST_COMMAND: Final = 1024**2
"""Bytes. The original client sends some hundred."""

READ: Final = ["GET", "HEAD"]
EVERYTHING: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

Reader = Annotated[Principal, Depends(access.needs(Role.VIEWER))]
Writer = Annotated[Principal, Depends(access.needs(Role.SUBMITTER))]
Here = Annotated[Service, Depends(access.service)]

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=READ)
@router.api_route("/api", methods=READ)
async def welcome() -> Response:
    """For people."""
    return pages.welcome()


@router.api_route("/ready", methods=READ)
async def ready() -> Response:
    """Asked before every poll."""
    return Response("sure am ready", media_type="text/html")


@router.api_route("/lively", methods=READ)
async def lively() -> Response:
    """Asked by whoever restarts services."""
    return Response("sure am lively", media_type="text/html")


@router.api_route("/api/tools/{name}", methods=READ)
async def tools(_: Reader) -> Response:
    """The client itself, under any name: clients ask by that of their own file, which may be
    ``anubis-0.6.2``, and write over that file whatever comes, an error page too.
    """
    return _tool()


@router.api_route("/downloads/{name}-latest", methods=READ)
async def downloads(_: Reader) -> Response:
    """The client itself, where its ``--upgrade`` looks for it; the original had forgotten this."""
    return _tool()


@router.api_route("/api/job/script/{name}", methods=READ)
async def script(name: str, here: Here, _: Reader) -> Response:
    """Whether an archive need not be sent again."""
    return PlainTextResponse("true" if await here.scripts.has(name) else "false")


@router.api_route("/api/job/results/{client_id}/{action_id}", methods=READ)
async def output(
    client_id: str, action_id: str, request: Request, here: Here, _: Reader
) -> Response:
    """What the program wrote."""
    subject = await finding.find(here, action_id)
    is_theirs = subject is not None and subject.client_id == client_id and subject.run is not None
    if not is_theirs or request.method == "HEAD":
        return Response("[]", media_type=JSON)
    return StreamingResponse(results.hits(here.application.logs, RunId(action_id)), media_type=JSON)


@router.post("/api/job/descriptor")
async def submit(request: Request, here: Here, who: Writer) -> Response:
    """Take a descriptor, and perhaps scripts. Answers with the bare id of the action."""
    try:
        async with forms.received(request) as form:
            submitted = reading.submission(form.event)
            if form.script is not None:
                await here.scripts.put(form.script.name, form.script.parts())
        submitter = _user(here, who, submitted.sender)
        accepted = await submitting.accept(here, submitted, submitter)
    except AnubisError as error:
        return refusing.refused(error, refusing.DESCRIPTOR)
    kind = "schedule.add" if accepted.is_schedule else "run.submit"
    await access.note(request, kind, accepted.action_id)
    return PlainTextResponse(accepted.action_id)


@router.api_route("/api/job", methods=EVERYTHING)
@router.api_route("/api/job/", methods=EVERYTHING)
@router.delete("/api/job/{client_id}")
async def unimplemented() -> Response:
    """What the original never had."""
    return pages.missing()


@router.api_route("/api/job/{client_id}", methods=READ)
async def jobs(client_id: str, here: Here, _: Reader, since: str = "0") -> Response:
    """What a client has submitted, oldest first."""
    actions = await here.actions.submissions(
        client_id, after=paging.after(since), limit=paging.MOST
    )
    listed = [
        {"action_id": action.id, "timestamp": paging.milliseconds(action.at)} for action in actions
    ]
    return _json({"action_ids": listed})


@router.api_route("/api/job/{client_id}/{action_id}", methods=READ)
async def status(
    client_id: str, action_id: str, request: Request, here: Here, _: Reader
) -> Response:
    """What has happened since the client last asked. Nothing new is 404 without a body."""
    subject = await finding.find(here, action_id)
    if subject is None or subject.client_id != client_id:
        return Response(status_code=404)
    since = request.query_params.get("since", "0")
    told = await statuses.messages(here, subject, since, _address(request))
    return _json(told) if told else Response(status_code=404)


@router.delete("/api/job/{client_id}/{action_id}")
async def cancel(action_id: str, request: Request, here: Here, who: Writer) -> Response:
    """Take a command. Answers with the bare id of the command, not of what it is about."""
    try:
        commanded = reading.command(await _body(request))
        subject = await finding.find(here, commanded.target)
        if subject is not None and subject.client_id != commanded.client_id:
            subject = None  # what belongs to others is not found
        if subject is not None:
            await access.must_own(request, subject.owner, "run.cancel", subject.id)
        found = canceling.NOTHING
        if commanded.command == keeping.CANCEL:
            by = _user(here, who, commanded.sender)
            found = await canceling.cancel(here, subject, by, cascade=commanded.cascade)
        command_id = await canceling.keep(here, commanded, action_id, found)
    except AnubisError as error:
        return refusing.refused(error, refusing.COMMAND)
    if found.has_target:
        await access.note(request, "run.cancel", commanded.target)
    return PlainTextResponse(command_id)


def _user(here: Service, who: Principal, sender: reading.SenderShape) -> str:
    """Who it is: by their token, or as they say where nobody needs one."""
    return who.user if here.requires_tokens else submitting.user(sender["client_username"])


async def _body(request: Request) -> bytes:
    """The body, whatever its media type: the original client names none."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_COMMAND:
            raise reading.Malformed(f"expected at most {LARGEST_COMMAND} bytes")
    return bytes(body)


def _address(request: Request) -> str:
    """Where the client reached us."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"


def _tool() -> Response:
    return PlainTextResponse(Path(tool.FILE).read_bytes())


def _json(value: object) -> Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), media_type=JSON)
