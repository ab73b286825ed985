"""What all models share: answers describe, questions are strict."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

LARGEST: Final = 2**63 - 1
"""The largest number that a store can compare with."""

Count = Annotated[int, Field(ge=0)]

Line = Annotated[str, StringConstraints(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A name or the like: it is shown in lists and messages, so it has no control characters."""


def _moment(text: str) -> datetime:
    """ISO 8601 and nothing else; pydantic would take numbers too, of seconds or milliseconds."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError("a moment in ISO 8601, such as 2024-05-17T12:00:00Z") from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


Moment = Annotated[datetime, BeforeValidator(_moment)]
"""An instant; without a time zone it is in UTC."""


class Answer(BaseModel):
    """Something we answer. Never used to make answers, only to say in OpenAPI what they hold."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Body(BaseModel):
    """Something we are given as JSON. A field that we do not know is a mistake."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid", strict=True)


class Filters(BaseModel):
    """Something we are given as a query. A parameter that we do not know is a mistake."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid")
