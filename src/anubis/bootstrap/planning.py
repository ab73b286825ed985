"""What a run would be made of, without a run: ``anubis plan``."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses

from anubis.bootstrap.application import Planned, Submission
from anubis.bootstrap.local import LocalApplication
from anubis.domain.document import Document
from anubis.stages.presentation import plan_shapes


async def with_code(document: Document, path: str | None) -> Document:
    """The document as if the code under ``path`` had been submitted beside it; nothing is sent.

    Raises UserError for what cannot be packed.
    """
    if path is None:
        return document
    from anubis.adapters.script_store import packing

    with contextlib.closing(await asyncio.to_thread(packing.pack, path)) as archive:
        return dataclasses.replace(document, script=archive.name)


async def planned(application: LocalApplication, submission: Submission) -> Planned:
    """The plan that a submission would get now. See ``Application``."""
    parsed = await application.parsed(submission.document)
    once = dataclasses.replace(submission, wants_it_now=True)
    request = await application.requested(once, parsed.descriptor)
    shape = plan_shapes.plan_shape(request.plan, request.engine, request.demand)
    return Planned(plan=shape, warnings=parsed.warnings)
