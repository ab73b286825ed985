from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from anubis.domain import identity

MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 1), max_value=datetime(9999, 1, 1), timezones=st.just(UTC)
)


@given(now=MOMENTS, randomness=st.binary(min_size=8, max_size=8))
def test_an_id_is_a_lower_case_uuid_of_version_seven(now: datetime, randomness: bytes) -> None:
    text = identity.run_id(now, randomness)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122


@given(now=MOMENTS, first=st.binary(min_size=8, max_size=8), second=st.binary(min_size=8))
def test_ids_sort_by_time_even_within_a_millisecond(
    now: datetime, first: bytes, second: bytes
) -> None:
    later = now + timedelta(microseconds=1)
    assert identity.run_id(now, first) < identity.run_id(later, second)
