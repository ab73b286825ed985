"""``since``: strictly after a key, from a bare millisecond on, a hundred at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.entrypoints.api.legacy import paging
from anubis.entrypoints.api.legacy.paging import Placed
from anubis.entrypoints.api.legacy.telling import Line
from anubis.entrypoints.api.legacy.words import Speaker, Status
from anubis.testing.clock import NOON

NOW = paging.milliseconds(NOON)


def messages(count: int) -> list[Placed]:
    lines = [
        Line(
            mark=f"{number}",
            at=NOON + timedelta(milliseconds=number),
            speaker=Speaker.WATCHER,
            status=Status.RUNNING,
            text="x",
        )
        for number in range(count)
    ]
    return paging.placed("action", lines)


def marks(page: object) -> list[str]:
    assert isinstance(page, tuple)
    return [one.line.mark for one in page]


def test_nothing_given_is_the_beginning_and_a_hundred_is_a_page() -> None:
    found = messages(120)

    assert marks(paging.page(found, "0")) == [f"{number}" for number in range(100)]
    assert marks(paging.page(found, found[99].key)) == [f"{number}" for number in range(100, 120)]


def test_a_key_gives_what_comes_after_it() -> None:
    found = messages(3)

    assert marks(paging.page(found, found[1].key)) == ["2"]
    assert marks(paging.page(found, found[2].key)) == []


def test_the_quotes_in_the_clients_own_notes_do_no_harm() -> None:
    found = messages(3)

    assert marks(paging.page(found, f'{found[1].tstamp}:"{found[1].message_id}"')) == ["2"]


def test_a_bare_millisecond_includes_what_happened_in_it() -> None:
    found = messages(3)

    assert marks(paging.page(found, f"{NOW + 1}")) == ["1", "2"]


@pytest.mark.parametrize("since", ["", "zzz", "-1", "9" * 99, "٣", "\0", ":", "0:"])
def test_a_text_that_is_no_key_has_its_place_in_the_dictionary(since: str) -> None:
    found = messages(3)

    assert marks(paging.page(found, since)) == (["0", "1", "2"] if since < "1" else [])


IDS = st.text("0123456789abcdef-", min_size=1, max_size=8)
TIMES = st.integers(1_000_000_000_000, 9_999_999_999_999)


@given(st.lists(st.tuples(TIMES, IDS), unique=True), st.data())
def test_jobs_are_paged_as_their_keys_sort_as_text(
    jobs: list[tuple[int, str]], data: st.DataObject
) -> None:
    keys = [f"{time}:{name}" for time, name in jobs]
    prefixes = st.sampled_from(keys).flatmap(
        lambda key: st.integers(0, len(key)).map(lambda end: key[:end])
    )
    given_keys = prefixes if keys else st.nothing()
    nearly = st.builds(lambda key, rest: key + rest, given_keys, st.text("09:;/!a", max_size=2))
    since = data.draw(st.one_of(given_keys, nearly, st.text(max_size=20)))
    plain = paging.unquoted(since)

    start = paging.after(since)

    assert {f"{time}:{name}" for time, name in jobs if (time, name) > start} == {
        key for key in keys if key > plain
    }
