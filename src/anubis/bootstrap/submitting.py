"""From descriptor to stored run: the stages planning and submission, in order."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping

from anubis.domain.descriptor import (
    SINGLE_RUN,
    Descriptor,
    ExecutionEngine,
    benchmark_name,
)
from anubis.domain.document import Document
from anubis.domain.errors import UserError
from anubis.ports.engine import Capabilities
from anubis.stages.planning import planning
from anubis.stages.submission.submitting import Request

DEFAULT_ENGINE = "process"
"""What ``execution_engine = "default"`` means where there is no cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submitter:
    """Who submits, and the environment of the shell they do it from."""

    name: str
    environment: Mapping[str, str]
    wants_it_now: bool = False  #: once and now, whatever the descriptor's schedule says


def engine_of(descriptor: Descriptor) -> str:
    """The engine a descriptor asks for."""
    wanted = descriptor.info.execution_engine
    return DEFAULT_ENGINE if wanted is ExecutionEngine.DEFAULT else wanted.value


def request(
    document: Document, descriptor: Descriptor, capabilities: Capabilities, submitter: Submitter
) -> Request:
    """Plan the run. Raises UserError for what this installation cannot do."""
    if descriptor.info.scheduling != SINGLE_RUN and not submitter.wants_it_now:
        raise UserError(
            f"info.scheduling: found {descriptor.info.scheduling!r}, expected 'single_run'; "
            "schedules need a service, and this version has none: let cron call `anubis run`, "
            "which runs a descriptor once and now"
        )
    context = planning.Context(
        directory=document.directory,
        environment=submitter.environment,
        python=sys.executable,
    )
    return Request(
        document=document,
        plan=planning.plan(descriptor, capabilities, context),
        benchmark=benchmark_name(descriptor, document),
        engine=capabilities.name,
        labels=descriptor.info.labels,
        submitter=submitter.name,
    )
