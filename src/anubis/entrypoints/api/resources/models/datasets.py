"""Datasets of the service's cache, and transfers into it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from anubis.domain.dataset import DatasetKind
from anubis.domain.fetch import FetchState
from anubis.entrypoints.api.resources.models.kinds import Answer, Body, Count, Filters
from anubis.entrypoints.api.resources.models.runs import LARGEST_PAGE

DatasetCursor = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,17}\.[0-9a-f]{64}$")]
"""What ``next`` of the page before said."""

Uri = Annotated[
    str,
    StringConstraints(max_length=4096, pattern=r"^([A-Za-z][A-Za-z0-9+.-]*:|/)[^\x00-\x1f\x7f]+$"),
]
"""An address with its scheme, or an absolute path; without control characters."""


class Dataset(Answer):
    """Content that the cache holds: whole, verified, never changed."""

    key: str
    """64 hex digits: of what was asked for. Its unique beginnings name it too."""
    uri: str
    """Where it came from, without a password and without its query, which may be a signature."""
    checksum: str | None
    """What it had to have, as ``algorithm:hex``."""
    unpacked: bool
    """Whether it is what an archive held."""
    kind: DatasetKind
    path: str | None
    """Always null here: where it is on the machine of the service is of no use elsewhere."""
    digest: str
    """``sha256:…`` of the file, or of the list of all files of a directory."""
    size_bytes: Count
    files: Count
    fetched_at: datetime
    used_at: datetime
    pinned_by: list[str]
    """Runs that use it now; such a dataset is not evicted."""


class DatasetPage(Answer):
    """Some datasets, those fetched last first."""

    datasets: list[Dataset]
    next: str | None
    """The ``cursor`` of the next page; null: this is the last one."""


class Failure(Answer):
    """Why a transfer failed."""

    type: str
    """Names the kind of problem, for programs: a URN, as in problem documents."""
    detail: str
    """What happened and what to do, for people."""


class Fetch(Answer):
    """A transfer into the cache, as far as it has come."""

    key: str
    """Of the dataset that it brings."""
    uri: str
    """Without a password and without its query."""
    state: FetchState
    wanted_by: list[str]
    """Who asked for it, in that order."""
    started_at: datetime
    ended_at: datetime | None
    done_bytes: Count
    total_bytes: int | None
    """Null: the source does not tell."""
    problem: Failure | None
    """Of one that failed."""


class Verification(Answer):
    """Whether a dataset still is what was fetched."""

    key: str
    sound: bool | None
    """False: it was damaged, and is gone. Null: not known yet, ask again."""


class Eviction(Answer):
    """A dataset that is gone."""

    key: str
    freed_bytes: Count


class DatasetWish(Body):
    """The dataset to be fetched."""

    uri: Uri = Field(examples=["https://data.example/imagenet-mini.tar.gz"])
    """Where it is; ``file:`` and absolute paths mean the machine of the service."""
    checksum: Annotated[str, StringConstraints(max_length=140)] = Field(
        "", examples=["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
    )
    """What the file must have: ``algorithm:hex`` (md5, sha1, sha256, sha512), or the bare digits of
    an MD5. Empty: unknown."""
    unpack: bool = False
    """Whether it is an archive whose content is wanted."""


class DatasetFilters(Filters):
    """Which datasets."""

    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many at most."""
    cursor: DatasetCursor | None = Field(
        None,
        examples=[
            "1715947200000000.9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        ],
    )
    """``next`` of the page before."""
