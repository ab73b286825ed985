"""From descriptor to stored run: the stages planning and submission, in order."""

from __future__ import annotations

import sys

from anubis.bootstrap.application import Submission
from anubis.domain.descriptor import (
    SINGLE_RUN,
    Descriptor,
    ExecutionEngine,
    benchmark_name,
)
from anubis.domain.errors import UserError
from anubis.ports.engine import Capabilities
from anubis.stages.planning import planning
from anubis.stages.submission.submitting import Request

DEFAULT_ENGINE = "process"
"""What ``execution_engine = "default"`` means where there is no cluster."""


def engine_of(descriptor: Descriptor) -> str:
    """The engine a descriptor asks for."""
    wanted = descriptor.info.execution_engine
    return DEFAULT_ENGINE if wanted is ExecutionEngine.DEFAULT else wanted.value


def request(submission: Submission, descriptor: Descriptor, capabilities: Capabilities) -> Request:
    """Plan the run. Raises UserError for what this installation cannot do."""
    if descriptor.info.scheduling != SINGLE_RUN and not submission.wants_it_now:
        raise UserError(
            f"info.scheduling: found {descriptor.info.scheduling!r}, expected 'single_run': "
            "a descriptor with a schedule is handed in as a schedule, or run once and now"
        )
    context = planning.Context(
        directory=submission.document.directory,
        environment=submission.environment,
        python=sys.executable,
    )
    return Request(
        document=submission.document,
        plan=planning.plan(descriptor, capabilities, context),
        benchmark=benchmark_name(descriptor, submission.document),
        engine=capabilities.name,
        labels=descriptor.info.labels,
        submitter=submission.submitter,
        key=submission.key,
    )
