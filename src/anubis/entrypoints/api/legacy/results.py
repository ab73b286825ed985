"""The output of a run as Elasticsearch's hits were: one per line, all of them, oldest first."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Final

from anubis.domain.logline import LogLine
from anubis.domain.run import RunId
from anubis.entrypoints.api.legacy import paging
from anubis.ports.log_store import LogQuery, LogReader

UNIT: Final = "benchmark"
"""The original kept the output of this container only."""

_BATCH: Final = 64 * 1024
"""Characters sent at a time."""


async def hits(logs: LogReader, run_id: RunId) -> AsyncIterator[str]:
    """A JSON array, piece by piece; an empty one if there is no output."""
    text = "["
    separator = ""
    async for line in logs.lines(run_id, LogQuery(units=[UNIT])):
        text += f"{separator}{hit(run_id, line)}"
        separator = ","
        if len(text) > _BATCH:
            yield text
            text = ""
    yield f"{text}]"


def hit(run_id: RunId, line: LogLine) -> str:
    """One line of output."""
    at = line.at
    return json.dumps(
        {
            "_index": f"logstash-{at:%Y.%m.%d}",
            "_type": "fluentd",
            "_id": f"{run_id}-{line.number}",
            "_score": None,
            "_source": {"log": line.text.decode("utf-8", "replace")},
            "sort": [paging.milliseconds(at)],
        }
    )
