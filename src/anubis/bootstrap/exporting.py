"""Make a schedule of the user's own cluster out of a descriptor: ``anubis export``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from anubis.adapters.engine.kubernetes.manifests import cron_job
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
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


def exported(
    document: Document,
    descriptor: Descriptor,
    wanted: Wanted,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Manifest, ...]:
    """The objects of a CronJob. Raises UserError for what cannot be one."""
    info, schedule = descriptor.info, descriptor.schedule
    with submitting.placing_problems(document):
        if info.scheduling == SINGLE_RUN:
            raise UserError(
                f"info.scheduling: found {SINGLE_RUN!r}, expected five fields of cron, such as "
                "'0 3 * * *'"
            )
        export = cron_job.Export(
            benchmark=benchmark_name(descriptor, document),
            content=document.content.decode(),
            cron=info.scheduling,
            time_zone=schedule.time_zone,
            overlap=schedule.overlap,
            catch_up=schedule.catch_up,
            grace=descriptor.limits.grace,
            endpoint=_endpoint(wanted.service, environ),
            token_secret=wanted.token_secret,
            image=wanted.image or loading.load(environ).kubernetes_image,
            namespace=wanted.namespace,
        )
        if wrong := "\n".join(cron_job.obstacles(export)):
            raise UserError(wrong)
    return cron_job.objects(export)


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
