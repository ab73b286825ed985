"""Check descriptors before they are submitted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from anubis.domain.errors import DescriptorInvalid
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, submissions
from anubis.entrypoints.api.resources.answering import Json
from anubis.entrypoints.api.resources.models import descriptors, plans, runs
from anubis.entrypoints.api.resources.parameters import Here, Submitter, Viewer
from anubis.stages.descriptor.schema import json_schema
from anubis.stages.presentation import shapes

router = APIRouter(prefix=docs.PREFIX, tags=["descriptors"])


@router.post(
    "/descriptors/validate",
    operation_id="validateDescriptor",
    summary="Check a descriptor",
    responses=docs.answer(
        descriptors.Verdict, {"valid": True, "problems": [examples.WARNING]}, "What we think of it."
    ),
    openapi_extra=docs.descriptor_body(),
)
async def validate(
    request: Request, here: Here, _: Viewer, options: Annotated[runs.SubmissionOptions, Query()]
) -> Response:
    """Nothing is stored. All problems are told at once, each with its place, what was found and
    what was expected; a valid descriptor may have warnings.
    """
    given = await submissions.read(request, options)
    try:
        parsed = await here.application.parsed(given.document)
    except DescriptorInvalid as error:
        return Json({"valid": False, "problems": [_shape(problem) for problem in error.problems]})
    return Json({"valid": True, "problems": [_shape(problem) for problem in parsed.warnings]})


@router.post(
    "/descriptors/plan",
    operation_id="planDescriptor",
    summary="Plan a run of a descriptor",
    responses=docs.answer(
        plans.Planned, {"plan": examples.PLAN, "warnings": []}, "What a run would be made of."
    ),
    openapi_extra=docs.descriptor_body(),
)
async def plan(
    request: Request,
    here: Here,
    who: Submitter,
    options: Annotated[runs.SubmissionOptions, Query()],
) -> Response:
    """Nothing is stored or run. All that stands in the way is told at once, each with the field of
    the descriptor. What only the engine will know is in angle brackets.
    """
    given = await submissions.read(request, options)
    planned = await here.application.plan(given.by(who, None))
    warnings = [_shape(problem) for problem in (*given.warnings, *planned.warnings)]
    return Json({"plan": planned.plan, "warnings": warnings})


@router.post(
    "/descriptors/manifest",
    operation_id="getManifest",
    summary="Get the Kubernetes objects of a run of a descriptor",
    responses=docs.answer(
        plans.Manifested,
        {"objects": [examples.MANIFEST], "notes": [], "warnings": []},
        "What Kubernetes would get.",
    ),
    openapi_extra=docs.descriptor_body(),
)
async def manifest(
    request: Request,
    here: Here,
    who: Submitter,
    options: Annotated[runs.ManifestOptions, Query()],
) -> Response:
    """Nothing is stored or applied. In the order in which they would be applied; what only a run
    has is stood for: its id by zeros, keys and code by words in angle brackets.
    """
    given = await submissions.read(request, options)
    made = await here.application.manifest(given.by(who, None), options.namespace)
    warnings = [_shape(problem) for problem in (*given.warnings, *made.warnings)]
    return Json({"objects": list(made.objects), "notes": list(made.notes), "warnings": warnings})


_shape = shapes.problem_shape


@router.get(
    "/descriptors/schema",
    operation_id="getDescriptorSchema",
    summary="Get the JSON Schema of descriptors",
    responses=docs.any_object(
        {"title": "Anubis descriptor", "type": "object"}, "A JSON Schema of draft 2020-12."
    ),
)
async def get_schema(_: Viewer) -> Response:
    """For editors that complete and check while one writes."""
    return Json(json_schema())
