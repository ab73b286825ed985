"""The words of the original services: who spoke, which statuses there are, and their exact texts.

A client looks for some of these letter by letter, so none may ever change. What we know beyond them
goes into further fields of a message, never into its text.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class Speaker(enum.StrEnum):
    """The services of the original, in whose names we speak."""

    CLIENT = "anubis-client"
    BFF = "bai-bff"
    FETCHER = "fetcher-dispatcher"
    EXECUTOR = "executor"
    SAGEMAKER = "sm-executor"
    WATCHER = "watcher"
    CRON = "anubis-cron-job"


VERSIONS: Final[Mapping[Speaker, str]] = MappingProxyType(
    {
        Speaker.CLIENT: "0.6.2",
        Speaker.BFF: "0.6.2",
        Speaker.FETCHER: "1.0",
        Speaker.EXECUTOR: "1.0",
        Speaker.SAGEMAKER: "1.0",
        Speaker.WATCHER: "0.1.0",
        Speaker.CRON: "1.0",
    }
)
"""What each of them called itself."""


class Status(enum.StrEnum):
    """Where one service stands with an action. Not where the run stands: several succeed in one."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    ERROR = "ERROR"
    SUCCEEDED = "SUCCEEDED"
    CANCELED = "CANCELED"
    METRICS_AVAILABLE = "METRICS AVAILABLE"


RECEIVED: Final = "Submission has been successfully received..."
NOTHING_TO_FETCH: Final = "Nothing to fetch"
INITIATING: Final = "Initiating downloads..."
PREPARING: Final = "Preparing {src} for download..."
DOWNLOADED: Final = "{src} downloaded..."
DOWNLOADED_ALL: Final = "All downloads processed"
DOWNLOAD_FAILED: Final = "{src} download failed: '{message}'..."
ABORTING: Final = "Aborting execution"
PROCESSING: Final = "Processing benchmark submission request..."
CREATED: Final = "Benchmark successfully created..."
WATCHING: Final = "Watching Kubernetes benchmark"
PENDING_NODE: Final = "Benchmark pending node autoscaling"
PENDING_POD: Final = "Benchmark pending pod initialization"
RUNNING: Final = "Benchmark running"
METRICS: Final = "Metrics available for job {action_id} at {address}"
FINISHED: Final = "Benchmark finished successfully"
WATCH_ENDED: Final = "No longer watching benchmark"
FAILED: Final = "Benchmark failed for an unknown reason"
NOT_RUN: Final = "Benchmark failed"
ERROR: Final = "Error executing benchmark: {reason}"

CANCELING: Final = "Canceling downloads..."
NO_DOWNLOADS: Final = "No downloads to cancel..."
DOWNLOAD_CANCELED: Final = "{src} download canceled..."
CANCELED: Final = "Execution successfully cancelled..."
WATCH_CANCELED: Final = "Benchmark cancelled - watch ended"
DISPATCHING: Final = "Action received, dispatching delete for <{action_id}>"
COMMAND_DONE: Final = "Cancel command processed successfully"
COMMAND_FOUND_NOTHING: Final = "Cancel command failed: No resources found for '{action_id}'"

PROCESSING_SCHEDULED: Final = "Processing scheduled benchmark submission request..."
SCHEDULED: Final = "Scheduled benchmark successfully submitted with job id b-{action_id}"
SPAWNING: Final = "Spawning benchmark with action_id: [{action_id}]"

_QUOTES: Final = str.maketrans({'"': "'", "\\": "/"})


def plain(text: str) -> str:
    """A text without what the original client stumbles over: it reads each message a second time,
    after a shell has. So no double quotes, no backslashes, and nothing that JSON would escape.
    """
    return "".join(sign if sign.isprintable() else " " for sign in text.translate(_QUOTES)).strip()
