"""From descriptor to stored run: the stages planning and submission, in order."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping

from anubis.bootstrap.application import Submission
from anubis.domain import dataset
from anubis.domain.demand import HIGHEST_PRIORITY, LOWEST_PRIORITY, Capacity, Demand
from anubis.domain.descriptor import (
    SINGLE_RUN,
    Descriptor,
    ExecutionEngine,
    benchmark_name,
)
from anubis.domain.document import Document
from anubis.domain.errors import DatasetInvalid, UserError
from anubis.domain.plan import SOLE, Plan
from anubis.ports.engine import Capabilities
from anubis.settings.model import Settings
from anubis.stages.planning import planning
from anubis.stages.queueing import fitting
from anubis.stages.submission.submitting import Request

PYTHON_OF_IMAGES = "python3"
"""What ``ANUBIS_PYTHON`` is where our own interpreter is not: nearly every image has one of it."""

LOCAL_SCHEMES = frozenset({"", "file"})

SUMMED = " (all programs of the run count together)"


def engine_of(descriptor: Descriptor) -> str:
    """The engine a descriptor asks for; empty: whichever is the first here."""
    wanted = descriptor.info.execution_engine
    return "" if wanted is ExecutionEngine.DEFAULT else wanted.value


@contextlib.contextmanager
def placing_problems(document: Document) -> Iterator[None]:
    """Add file, line and column to a UserError that names fields of a descriptor."""
    try:
        yield
    except UserError as error:
        if type(error) is not UserError:  # a narrower one has words of its own
            raise
        # Here and not above: commands that find nothing wrong need not pay for it.
        from anubis.stages.descriptor import placing

        raise UserError(placing.placed(str(error), document)) from error


def request(
    submission: Submission, descriptor: Descriptor, capabilities: Capabilities, *, slots: int
) -> Request:
    """Plan the run. Raises UserError for what this installation cannot do."""
    if descriptor.info.scheduling != SINGLE_RUN and not submission.wants_it_now:
        raise UserError(
            f"info.scheduling: found {descriptor.info.scheduling!r}, expected 'single_run': "
            "a descriptor with a schedule is handed in as a schedule, or run once and now"
        )
    must_have_one_script(descriptor, submission.document.script)
    context = planning.Context(
        directory=submission.document.directory,
        environment=submission.environment,
        python=PYTHON_OF_IMAGES if capabilities.needs_image else sys.executable,
        script=submission.document.script,
    )
    plan = planning.plan(descriptor, capabilities, context)
    plan = dataclasses.replace(plan, submitter=submission.submitter)
    return Request(
        document=submission.document,
        plan=plan,
        benchmark=benchmark_name(descriptor, submission.document),
        engine=capabilities.name,
        labels=descriptor.info.labels,
        submitter=submission.submitter,
        key=submission.key,
        priority=_priority(submission, descriptor),
        demand=demand(plan, descriptor, capabilities, slots=slots),
    )


def must_have_one_script(descriptor: Descriptor, script: str) -> None:
    """Raise UserError if code is submitted beside a descriptor that names an archive of its own."""
    if script and descriptor.ml.script is not None:
        raise UserError(
            f"ml.script: found {descriptor.ml.script.script!r}, and code that was submitted beside "
            "the descriptor (--script), expected one of them; remove [ml.script], or submit it "
            "without code"
        )


def _priority(submission: Submission, descriptor: Descriptor) -> int:
    wanted = descriptor.info.priority if submission.priority is None else submission.priority
    if not LOWEST_PRIORITY <= wanted <= HIGHEST_PRIORITY:
        raise UserError(
            f"priority: found {wanted}, expected a whole number from {LOWEST_PRIORITY} to "
            f"{HIGHEST_PRIORITY}"
        )
    return wanted


def demand(plan: Plan, descriptor: Descriptor, capabilities: Capabilities, *, slots: int) -> Demand:
    """What all units together ask of their engine.

    With a single slot, every run has the engine for itself. Where an engine has many machines, room
    on them is its own affair, and to be alone is to be alone on one of them.
    """
    if capabilities.has_machines:
        return Demand(concurrency=descriptor.limits.concurrency)
    asked = [unit.resources for unit in plan.units]
    exclusive = descriptor.hardware.exclusive
    return Demand(
        cpus=sum(one.cpus or 0.0 for one in asked),
        memory_bytes=sum(one.memory_bytes or 0 for one in asked),
        gpus=sum(one.gpus for one in asked),
        exclusive=slots == 1 if exclusive is None else exclusive,
        concurrency=descriptor.limits.concurrency,
    )


def must_fit(request: Request, capacities: Callable[[], Mapping[str, Capacity]]) -> None:
    """Raise UserError if the engine could never start the run, naming every field.

    Whoever asks for nothing in particular does not have to wait until GPUs have been looked for.
    """
    asked = request.demand
    if not (asked.cpus or asked.memory_bytes or asked.gpus):
        return
    obstacles = fitting.obstacles(asked, capacities()[request.engine], request.engine)
    # Nobody finds the sum in the descriptor.
    is_sum = request.plan.deciding != SOLE
    if lines := "\n".join(f"{line}{SUMMED if is_sum else ''}" for line in obstacles):
        raise UserError(lines)


def must_be_fetchable(request: Request, settings: Settings) -> None:
    """Raise UserError for data that nobody here could or may fetch, naming every field: a scheme
    that is not known, or whose library is not installed. Nothing is asked of any source yet.
    """
    if not request.plan.fetches:
        return
    # Here and not above: most runs fetch nothing.
    from anubis.adapters.dataset_source import available

    sources, lines = available.sources(), []
    for fetch in request.plan.fetches:
        try:
            must_not_be_ours(fetch.uri, settings)
            sources.check(fetch.uri)
        except DatasetInvalid as error:
            lines.append(f"{fetch.field}.src: {error}")
    if lines:
        raise UserError("\n".join(lines))


def must_not_be_ours(uri: str, settings: Settings) -> None:
    """Raise DatasetInvalid for a file of this machine, where those are nobody's business."""
    if not settings.local_data and dataset.scheme_of(uri) in LOCAL_SCHEMES:
        raise DatasetInvalid(
            f"found {uri!r}, a file of the machine of the service, expected an address such as "
            "https:// or s3://: local_data (ANUBIS_LOCAL_DATA) is false here"
        )
