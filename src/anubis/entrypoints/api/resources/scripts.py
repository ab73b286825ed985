"""Archives of code: whether one is here, and taking those that are not."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, submissions
from anubis.entrypoints.api.resources.answering import Json
from anubis.entrypoints.api.resources.models import scripts
from anubis.entrypoints.api.resources.parameters import Here, Submitter, Viewer

router = APIRouter(prefix=docs.PREFIX, tags=["scripts"])

TAR: Final = "application/x-tar"
KINDS: Final = (TAR, "application/octet-stream", "")
"""Programs that send files as they are often do not say what they send."""

Name = Annotated[
    str,
    Path(
        description="An archive: the SHA-256 of its content in hex digits, and `.tar`.",
        examples=[examples.SCRIPT],
    ),
]


@router.head(
    "/scripts/{name}",
    operation_id="hasScript",
    summary="Ask whether an archive of code is here",
    status_code=204,
    responses=docs.empty(204, "It is here, and need not be sent. To ask counts as its use."),
)
async def has_script(name: Name, here: Here, _: Viewer) -> Response:
    """404: it is not here. An archive that nobody uses for a long time is removed."""
    if not await here.application.scripts.has(name):
        raise HTTPException(404, "this archive is not here")
    return Response(status_code=204)


@router.put(
    "/scripts/{name}",
    operation_id="putScript",
    summary="Leave an archive of code here",
    status_code=201,
    responses={
        **docs.answer(scripts.Script, {"name": examples.SCRIPT}, "It was here already."),
        **docs.answer(scripts.Script, {"name": examples.SCRIPT}, "It is here now.", status=201),
    },
    openapi_extra=docs.raw_body(TAR, "the bytes of the archive"),
)
async def put_script(request: Request, name: Name, here: Here, _: Submitter) -> Response:
    """The body is a tar archive, not compressed, of at most 256 MiB; its name must be that of its
    content. One that holds links out of its folder, devices, or too many files is refused with 422.
    Then a submission may name it as its `script`.
    """
    submissions.must_be_plain(request)
    if (kind := submissions.media_type(request)) not in KINDS:
        raise HTTPException(415, f"Content-Type: found {kind!r}, expected {TAR}")
    inbox = here.application.scripts
    is_new = not await inbox.has(name)
    await inbox.put(name, request.stream())
    if is_new:
        await access.note(request, "script.put", name)
    return Json({"name": name}, 201 if is_new else 200)
