"""The examples in OpenAPI: one small story, told by every operation."""

from __future__ import annotations

import json
from typing import Final

from anubis.stages.presentation import plan_shapes, shapes

RUN_ID: Final = "018f8583-4a00-7000-9fec-f0f8a0d2f3a7"
SCHEDULE_ID: Final = "018f8583-0001-7000-8abc-0123456789ab"
SHA: Final = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
MOMENT: Final = "2024-05-17T12:00:00.000000Z"
LATER: Final = "2024-05-17T12:00:09.250000Z"

TOML: Final = """\
spec_version = "0.1.0"
info.description = "A model that learns"
info.labels = {task_name = "train"}
ml.benchmark_code = "echo loss=0.25"

[[output.metrics]]
name = "loss"
units = "nats"
pattern = 'loss=(\\S+)'
"""

SCHEDULED_TOML: Final = TOML.replace(
    "ml.benchmark_code", 'info.scheduling = "0 3 * * *"\nml.benchmark_code'
)

RUN: Final = shapes.RunShape(
    id=RUN_ID,
    state="SUCCEEDED",
    benchmark="train",
    engine="process",
    descriptor_sha=SHA,
    submitter="ada",
    labels={"team": "vision"},
    family=None,
    priority=0,
    demand=shapes.DemandShape(cpus=0.0, memory_bytes=0, gpus=0, exclusive=False, concurrency=None),
    waiting_for=None,
    version=9,
    submitted_at=MOMENT,
    state_since=LATER,
    deadline=LATER,
    started_at=MOMENT,
    ended_at=LATER,
    cancel_requested_at=None,
    elapsed_seconds=9.25,
    outcome=shapes.OutcomeShape(
        state="SUCCEEDED",
        reason="the program ended with exit code 0",
        cause="exited",
        unit="benchmark",
        exit_code=0,
        signal=None,
        last_lines=[],
    ),
)

NEW_RUN: Final = shapes.RunShape(
    id=RUN_ID,
    state="SUBMITTED",
    benchmark="train",
    engine="process",
    descriptor_sha=SHA,
    submitter="ada",
    labels={"team": "vision"},
    family=None,
    priority=0,
    demand=RUN["demand"],
    waiting_for=None,
    version=1,
    submitted_at=MOMENT,
    state_since=MOMENT,
    deadline="2024-05-17T13:00:00.000000Z",
    started_at=None,
    ended_at=None,
    cancel_requested_at=None,
    elapsed_seconds=0.0,
    outcome=None,
)

EVENT: Final = shapes.EventShape(
    number=2,
    sequence=1042,
    run=RUN_ID,
    at=MOMENT,
    kind="state",
    message="the program runs",
    data={"from": "STARTING", "to": "RUNNING"},
)

METRIC: Final = shapes.MetricShape(
    unit="benchmark",
    name="loss",
    source="pattern",
    units="nats",
    count=3,
    mean=0.5,
    median=0.5,
    min=0.25,
    max=0.75,
    std=0.25,
    p90=0.7,
    p95=0.725,
    p99=0.745,
    first=0.75,
    last=0.25,
)

ENVIRONMENT: Final = shapes.EnvironmentShape(
    machine={"cpu": "A fast one", "cores": 8}, moment={"load": 0.25}
)

WARNING: Final = shapes.ProblemShape(
    file="train.toml",
    line=4,
    column=1,
    field="info.task_name",
    found="'train'",
    expected="the label task_name",
    hint="",
    severity="deprecation",
)

LINE: Final = shapes.ExactLineShape(
    number=1,
    at=MOMENT,
    unit="benchmark",
    stream="stdout",
    text="loss=0.25",
    newline=True,
    base64=None,
)

MANIFEST: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "anubis-000000000000-benchmark", "namespace": "benchmarks"},
}

PLAN: Final = plan_shapes.PlanShape(
    engine="process",
    units=[
        plan_shapes.UnitShape(
            name="benchmark",
            image=None,
            command=["/usr/bin/python3", "train.py", "--data=<data 0>"],
            arguments=[],
            environment={"ANUBIS_PYTHON": "/usr/bin/python3", "ANUBIS_DATA_0": "<data 0>"},
            directory=None,
            script=None,
            mounts=[],
            resources=plan_shapes.ResourcesShape(
                cpus=2.0,
                memory_bytes=None,
                requested_cpus=None,
                requested_memory_bytes=None,
                gpus=0,
                extended_shm=True,
                privileged=False,
                ulimits={},
            ),
            placement=None,
            cpu_affinity=[],
            niceness=0,
            ports=[],
            after=[],
            readiness=None,
            liveness=None,
            is_service=False,
            decides=True,
        )
    ],
    demand=shapes.DemandShape(cpus=2.0, memory_bytes=0, gpus=0, exclusive=True, concurrency=None),
    fetches=[
        plan_shapes.FetchedShape(
            field="data.sources[0]", uri="s3://bucket/train", checksum=None, unpack=False
        )
    ],
    files={},
    metrics=[],
)

SCRIPT: Final = f"{SHA}.tar"

DOCUMENT: Final = shapes.DocumentShape(
    run=RUN_ID, name="train.toml", directory="", script="", sha=SHA, content=TOML
)

SCHEDULE: Final = shapes.ScheduleShape(
    id=SCHEDULE_ID,
    benchmark="train",
    cron="0 3 * * *",
    time_zone="UTC",
    overlap="skip",
    catch_up="last",
    engine="process",
    priority=0,
    descriptor_sha=SHA,
    submitter="ada",
    created_at=MOMENT,
    paused_at=None,
    next_at="2024-05-18T03:00:00.000000Z",
    last_at=None,
    last_run=None,
    last_note="",
    fired=0,
    version=1,
)

SCHEDULE_EVENT: Final = shapes.ScheduleEventShape(
    number=1,
    schedule=SCHEDULE_ID,
    at=MOMENT,
    kind="note",
    message="ada submitted train.toml",
    run=None,
)

FRAME: Final = {
    "id": str(EVENT["sequence"]),
    "event": "event",
    "data": json.dumps(EVENT, separators=(",", ":")),
}
