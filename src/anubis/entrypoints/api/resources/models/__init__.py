"""The shapes of requests and answers, for OpenAPI and for strict reading of what we are given.

Answers are made by ``stages.presentation.shapes``; a test holds that models and shapes have the
same fields. ``COMPONENTS`` are the models that OpenAPI names.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from anubis.entrypoints.api.resources.models import (
    datasets,
    descriptors,
    engines,
    events,
    history,
    metrics,
    output,
    plans,
    problems,
    runs,
    schedules,
    scripts,
)

COMPONENTS: Final[tuple[type[BaseModel], ...]] = (
    problems.Problem,
    runs.Run,
    runs.Status,
    runs.Submitted,
    runs.RunPage,
    runs.RunCounts,
    runs.QueuePage,
    runs.Submission,
    runs.Resubmission,
    events.Event,
    events.EventPage,
    metrics.Environment,
    metrics.RunMetrics,
    metrics.RunSeries,
    output.LogLine,
    output.LogPage,
    output.Artifacts,
    descriptors.Descriptor,
    descriptors.Verdict,
    plans.Planned,
    plans.Manifested,
    history.BenchmarkPage,
    history.FamilyPage,
    history.Family,
    history.Trend,
    schedules.Schedule,
    schedules.ScheduleDetails,
    schedules.Scheduled,
    schedules.SchedulePage,
    schedules.ScheduleEventPage,
    scripts.Script,
    datasets.Dataset,
    datasets.DatasetPage,
    datasets.Fetch,
    datasets.Verification,
    datasets.Eviction,
    engines.Engines,
)
