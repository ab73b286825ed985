"""Make a schedule of the user's own cluster out of a descriptor: ``anubis export``."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Mapping

from anubis.adapters.engine.kubernetes.manifests import cron_job
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.script_store import packing
from anubis.bootstrap import submitting
from anubis.domain.descriptor import SINGLE_RUN, Descriptor, benchmark_name
from anubis.domain.document import Document
from anubis.domain.endpoint import Endpoint
from anubis.domain.errors import UserError
from anubis.settings import loading, registering


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What the descriptor does not say. Empty: as this installation has it."""

    service: str = ""
    token_secret: str = ""
    image: str = ""
    namespace: str = ""
    script: str | None = None  #: the path of code that goes along; None: none does


async def exported(
    document: Document,
    descriptor: Descriptor,
    wanted: Wanted,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Manifest, ...]:
    """The objects of a CronJob. Raises UserError for what cannot be one."""
    with submitting.placing_problems(document):
        _must_recur(descriptor)
        submitting.must_have_one_script(descriptor, wanted.script or "")
    schedule = descriptor.schedule
    export = cron_job.Export(
        benchmark=benchmark_name(descriptor, document),
        content=document.content.decode(),
        code=await asyncio.to_thread(_code, document, wanted.script),
        cron=descriptor.info.scheduling,
        time_zone=schedule.time_zone,
        overlap=schedule.overlap,
        catch_up=schedule.catch_up,
        grace=descriptor.limits.grace,
        endpoint=_endpoint(wanted.service, environ),
        token_secret=wanted.token_secret,
        image=wanted.image or loading.load(environ).kubernetes_image,
        namespace=wanted.namespace,
    )
    with submitting.placing_problems(document):
        if wrong := "\n".join(cron_job.obstacles(export)):
            raise UserError(wrong)
    return cron_job.objects(export)


def _must_recur(descriptor: Descriptor) -> None:
    if descriptor.info.scheduling == SINGLE_RUN:
        raise UserError(
            f"info.scheduling: found {SINGLE_RUN!r}, expected five fields of cron, such as "
            "'0 3 * * *'"
        )


def _code(document: Document, path: str | None) -> cron_job.Code | None:
    """The archive of what is under a path. Raises UserError if it is too large to go along."""
    if path is None:
        _must_have_none(document)
        return None
    with contextlib.closing(packing.pack(path)) as archive:
        if archive.size > (most := cron_job.room(document.content)):
            raise UserError(
                f"{path}: found {archive.size:,} bytes of code once packed, expected at most "
                f"{most:,}: it travels in a ConfigMap, which holds {cron_job.MOST:,} bytes with "
                "the descriptor. Leave out what the run does not need, put what is large into the "
                "image or name it in data.sources; or have the service fire it, which has room for "
                "more: 'anubis submit FILE --script PATH'"
            )
        archive.content.seek(0)
        return cron_job.Code(name=archive.name, content=archive.content.read())


def _must_have_none(document: Document) -> None:
    """Raise UserError for the descriptor of a run that had code: it would be left behind."""
    if document.script:
        raise UserError(
            f"the run was submitted with code (the archive {document.script}), which is not in its "
            "descriptor; give the code with --script"
        )


def _endpoint(service: str, environ: Mapping[str, str]) -> str:
    """The address of the service, without a token: those belong into a Secret."""
    if service:
        return str(Endpoint.parse(service))
    found = registering.in_force(environ)
    if found is None:
        raise UserError(
            "a CronJob hands its runs to a service: give its address, as pods reach it, with "
            "--service, or register it (anubis register)"
        )
    return str(found.endpoint)
