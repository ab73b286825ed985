"""What the engine wants of a recorder, from the environment of its container."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

VARIABLE: Final = "ANUBIS_RECORDER"


class Places(NamedTuple):
    """Where things are in the recorder's container; the manifests say the same."""

    record: str = "/var/lib/anubis-record"  #: the journal, and requests to stop
    emit: str = "/tmp/benchmark-ai"  # noqa: S108 - the original's name, which programs know
    logs: str = "/var/log/anubis-pod/benchmark"  #: the node's files of what the program wrote


class Spec(NamedTuple):
    """The limits of one unit, and how it is asked."""

    unit: str
    running_seconds: float
    grace_seconds: float
    output_bytes: int
    drain_seconds: float  #: how long the journal is kept for whoever fetches it
    readiness: Mapping[str, object] | None = None  #: as a plan writes probes down
    liveness: Mapping[str, object] | None = None
    pins: str = ""  #: the folder that says which cached data the run needs; empty: none
    places: Places = Places()

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Raises ValueError, KeyError, TypeError if it is not what the engine writes."""
        told = json.loads(text)
        return cls(
            unit=str(told["unit"]),
            running_seconds=float(told["running_seconds"]),
            grace_seconds=float(told["grace_seconds"]),
            output_bytes=int(told["output_bytes"]),
            drain_seconds=float(told["drain_seconds"]),
            readiness=told.get("readiness"),
            liveness=told.get("liveness"),
            pins=str(told.get("pins") or ""),
        )
