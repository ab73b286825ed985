"""What is wrong: with requests, and with descriptors."""

from __future__ import annotations

from anubis.domain.problem import Severity
from anubis.entrypoints.api.resources.models.kinds import Answer


class DescriptorProblem(Answer):
    """Something wrong with a descriptor, or worth knowing about it."""

    file: str
    line: int
    column: int
    field: str
    """Dotted; empty for mistakes of syntax."""
    found: str
    expected: str
    hint: str
    severity: Severity


class FieldProblem(Answer):
    """Something wrong with a request."""

    field: str
    found: str
    expected: str


class Problem(Answer):
    """Why a request failed (RFC 9457)."""

    type: str
    """Names the kind of problem, for programs: a URN, or ``about:blank``."""
    title: str
    status: int
    detail: str
    """What happened and what to do, for people."""
    request_id: str
    """Under this id, the log of the service tells more."""
    problems: list[DescriptorProblem | FieldProblem] | None = None
    """Each thing that is wrong with a descriptor or with a request."""
