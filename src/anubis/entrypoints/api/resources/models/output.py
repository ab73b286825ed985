"""The output of runs, and what can be downloaded of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from anubis.domain.observation import Stream
from anubis.entrypoints.api.resources.models.kinds import LARGEST, Answer, Count, Filters, Line

MOST_LINES: Final = 10_000


class LogLine(Answer):
    """A line of output. Bytes that are not UTF-8 are replaced."""

    number: int
    """Its place in the output of the run, from 1."""
    at: datetime
    unit: str
    """The program that wrote it."""
    stream: Stream
    text: str
    """Without the newline at its end."""
    newline: bool
    """Whether it ended with one. A very long line comes in pieces, and only the last has one."""
    base64: str | None
    """Its exact bytes, where they are not UTF-8."""


class LogPage(Answer):
    """Some lines of output, in order."""

    lines: list[LogLine]
    next: int | None
    """``after`` of the next page; null: there are no more now."""


class LogFilters(Filters):
    """Which lines. Every filter given must hold."""

    unit: list[Line] = Field(default_factory=list, max_length=100, examples=[["benchmark"]])
    """Only output of these programs; may be repeated."""
    stream: list[Stream] = Field(default_factory=list, max_length=2, examples=[["stdout"]])
    """Only these streams; may be repeated."""
    contains: Annotated[str, Field(max_length=1000)] = Field("", examples=["loss"])
    """Only lines with this text, letter case as given."""
    after: Annotated[int, Field(ge=0, le=LARGEST)] = Field(0, examples=[0])
    """Only lines with a higher number."""
    tail: Annotated[int, Field(ge=0, le=MOST_LINES)] | None = Field(None, examples=[10])
    """Only the last so many of what matches."""
    skip: Annotated[int, Field(ge=0, le=LARGEST)] = Field(0, examples=[0])
    """Of ``text/plain``, leave out so many bytes at the beginning: to go on where a download broke
    off."""
    limit: Annotated[int, Field(ge=1, le=MOST_LINES)] = Field(1000, examples=[100])
    """How many at most, in JSON; fewer if they are very long: ``next`` tells. Streams have none."""


class Artifact(Answer):
    """A file that can be downloaded."""

    name: str
    media_type: str
    bytes: Count | None
    """Null: only known once it has been written."""
    description: str


class Artifacts(Answer):
    """What there is to download of a run."""

    artifacts: list[Artifact]
