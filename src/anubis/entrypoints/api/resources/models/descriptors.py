"""Descriptors as they were submitted, and what we think of them."""

from __future__ import annotations

from anubis.entrypoints.api.resources.models.kinds import Answer
from anubis.entrypoints.api.resources.models.problems import DescriptorProblem


class Descriptor(Answer):
    """A descriptor as it was submitted. Bytes that are not UTF-8 are replaced."""

    run: str
    """The run or schedule it belongs to."""
    name: str
    directory: str
    """Where relative paths start; empty: an empty folder of the run's own."""
    script: str
    """The archive of code that was submitted beside it; empty: none."""
    sha: str
    """SHA-256 of the exact bytes."""
    content: str


class Verdict(Answer):
    """What we think of a descriptor."""

    valid: bool
    problems: list[DescriptorProblem]
    """All of them; for a valid one, warnings and older spellings."""
