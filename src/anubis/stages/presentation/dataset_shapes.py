"""The JSON of datasets and their transfers, for ``--json`` and the HTTP API."""

from __future__ import annotations

import re
from typing import TypedDict

from anubis.domain import dataset
from anubis.domain.dataset import Dataset
from anubis.domain.errors import AnubisError
from anubis.domain.fetch import Fetch
from anubis.stages.presentation import shapes


class DatasetShape(TypedDict):
    """A dataset of the cache. ``uri`` is without a password and without its query."""

    key: str
    uri: str
    checksum: str | None
    unpacked: bool
    kind: str
    path: str | None
    digest: str
    size_bytes: int
    files: int
    fetched_at: str
    used_at: str
    pinned_by: list[str]


class FailureShape(TypedDict):
    """Why a transfer failed."""

    type: str
    detail: str


class FetchShape(TypedDict):
    """A transfer, as far as it has come."""

    key: str
    uri: str
    state: str
    wanted_by: list[str]
    started_at: str
    ended_at: str | None
    done_bytes: int
    total_bytes: int | None
    problem: FailureShape | None


def dataset_shape(found: Dataset, *, is_here: bool) -> DatasetShape:
    """A dataset; where it is, only for those on the same machine."""
    reference = found.reference
    return DatasetShape(
        key=found.key,
        uri=dataset.shown(reference.uri),
        checksum=None if reference.checksum is None else str(reference.checksum),
        unpacked=reference.unpack,
        kind=found.kind.value,
        path=(found.path or None) if is_here else None,
        digest=found.digest,
        size_bytes=found.size_bytes,
        files=found.files,
        fetched_at=shapes.iso(found.fetched_at),
        used_at=shapes.iso(found.used_at),
        pinned_by=list(found.pinned_by),
    )


def fetch_shape(fetch: Fetch) -> FetchShape:
    """A transfer."""
    return FetchShape(
        key=fetch.key,
        uri=fetch.uri,
        state=fetch.state.value,
        wanted_by=list(fetch.wanted_by),
        started_at=shapes.iso(fetch.started_at),
        ended_at=None if fetch.ended_at is None else shapes.iso(fetch.ended_at),
        done_bytes=fetch.done_bytes,
        total_bytes=fetch.total_bytes,
        problem=None if fetch.error is None else _failure(fetch.error),
    )


def _failure(error: AnubisError) -> FailureShape:
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()
    return FailureShape(type=f"urn:anubis:{name}", detail=str(error))
