"""``anubis dataset`` over a cache that is played."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from anubis.domain.dataset import Checksum, Dataset, Progress, Reference
from anubis.domain.errors import DatasetInvalid, UserError
from anubis.entrypoints.cli import transfers
from anubis.entrypoints.cli.rendering import datasets as rendering
from anubis.testing.clock import NOON, ManualClock
from anubis.testing.datasets import SIZE, PlayedCache

if TYPE_CHECKING:
    from tests.unit.cli.conftest import World
else:
    World = Any

RUN = "018f8583-4a00-7000-9fec-f0f8a0d2f3a7"


@pytest.fixture
def cache(world: World) -> PlayedCache:
    cache = PlayedCache(ManualClock(NOON))
    world.application = dataclasses.replace(world.application, open_datasets=lambda: cache)
    return cache


def hold(cache: PlayedCache, name: str, *, days: int = 0, pinned: bool = False) -> Dataset:
    return cache.hold(
        Reference(uri=f"s3://bucket/{name}?signature=x"),
        used_at=NOON - timedelta(days=days),
        pinned_by=(RUN,) if pinned else (),
    )


def test_datasets_are_listed_last_used_first(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = hold(cache, "old", days=3), hold(cache, "new", pinned=True)

    assert world.call("dataset", "list") == 0

    header, first, second, _, total = capsys.readouterr().out.splitlines()
    assert header.split() == ["key", "dataset", "size", "files", "used", "pinned"]
    assert first.split() == [
        *(new.key, "s3://bucket/new?…", "2", "KiB", "1"),
        *("just", "now", "1", "run"),
    ]
    assert second.split() == [old.key, "s3://bucket/old?…", "2", "KiB", "1", "3", "d", "ago"]
    assert total == "2 datasets, 4 KiB"


def test_a_narrow_terminal_keeps_key_name_and_size(cache: PlayedCache) -> None:
    found = hold(cache, "a-name-that-is-longer-than-a-narrow-terminal-is-wide")

    table = click.unstyle(rendering.datasets_table([found], NOON, width=50))

    assert all(len(line) <= 50 for line in table.splitlines())
    assert table.splitlines()[1].startswith(found.key[:12])
    assert "2 KiB" in table


def test_an_empty_cache_says_so(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not cache.held
    assert world.call("dataset", "list") == 0
    assert capsys.readouterr().out == "no datasets\n"


def test_programs_get_keys_or_json_with_the_path(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    found = hold(cache, "x")
    world.call("dataset", "list", "--keys")
    assert capsys.readouterr().out == f"{found.key}\n"

    world.call("dataset", "list", "--json")
    [shape] = json.loads(capsys.readouterr().out)["datasets"]
    assert (shape["key"], shape["path"]) == (found.key, found.path)
    assert "signature" not in str(shape)


@pytest.mark.parametrize("uri", ["", "  ", "/data/\udcff", "https://h/\udcff"])
def test_what_is_no_place_is_not_added(world: World, cache: PlayedCache, uri: str) -> None:
    with pytest.raises(click.UsageError, match="expected the path or URL of a dataset"):
        world.call("dataset", "add", uri)
    assert cache.asked == []


def test_adding_prints_the_key_that_a_descriptor_would_have(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = "a" * 64

    code = world.call(
        "dataset", "add", "s3://b/x.tar", "--checksum", f"SHA256:{digest.upper()}", "--unpack"
    )

    reference = Reference(
        uri="s3://b/x.tar", checksum=Checksum(algorithm="sha256", digest=digest), unpack=True
    )
    output = capsys.readouterr()
    assert code == 0
    assert cache.asked == [reference]
    assert output.out == f"{reference.key}\n"
    assert "s3://b/x.tar" in output.err


def test_a_path_becomes_absolute(
    world: World, cache: PlayedCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    world.call("dataset", "add", "data/../set.bin")

    assert [one.uri for one in cache.asked] == [f"{tmp_path}/set.bin"]


def test_what_cannot_be_fetched_is_an_error_with_its_reason(
    world: World, cache: PlayedCache
) -> None:
    cache.error = DatasetInvalid("expected md5 1, found 2")
    with pytest.raises(DatasetInvalid, match="found 2"):
        world.call("dataset", "add", "s3://b/x")
    with pytest.raises(UserError, match="algorithm 'crc'"):
        world.call("dataset", "add", "s3://b/x", "--checksum", "crc:1")


def test_a_damaged_dataset_is_told_by_the_exit_code(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    sound, damaged = hold(cache, "sound"), hold(cache, "damaged", days=1)
    assert world.call("dataset", "verify", "--all") == 0
    capsys.readouterr()
    cache.damaged.add(damaged.key)

    assert world.call("dataset", "verify", sound.key[:10], damaged.key) == 1

    assert capsys.readouterr().out == f"{sound.key} ok\n{damaged.key} damaged: removed\n"
    assert world.call("dataset", "verify", "--all", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"verified": [{"key": sound.key, "sound": True}]}


@pytest.mark.parametrize(
    "words",
    [
        ("verify",),
        ("verify", "abc", "--all"),
        ("evict",),
        ("evict", "abc", "--all"),
        ("evict", "--all", "--to", "1GB"),
        ("evict", "--unused-for", "-1"),
        ("evict", "--to", "much"),
    ],
)
def test_a_choice_that_is_none_or_two_is_refused(
    world: World, cache: PlayedCache, words: tuple[str, ...]
) -> None:
    found = hold(cache, "x")
    with pytest.raises(click.UsageError):
        world.call("dataset", *words)
    assert found.key in cache.held


def test_evicting_keeps_and_names_what_a_run_uses(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    free, used = hold(cache, "free"), hold(cache, "used", pinned=True)

    assert world.call("dataset", "evict", "--all") == 1

    output = capsys.readouterr()
    assert output.out == f"{free.key} evicted, 2 KiB freed\n"
    assert used.key[:12] in output.err
    assert RUN in output.err
    assert list(cache.held) == [used.key]


def test_evicting_by_age_takes_those_not_used_for_so_long(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = hold(cache, "new", days=29), hold(cache, "old", days=31)

    assert world.call("dataset", "evict", "--unused-for", "30", "--json") == 0

    evicted = [{"key": old.key, "freed_bytes": SIZE}]
    assert json.loads(capsys.readouterr().out) == {"evicted": evicted, "kept": []}
    assert list(cache.held) == [new.key]


def test_evicting_says_if_nothing_had_to_go(
    world: World, cache: PlayedCache, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(cache, "new", days=1)
    assert world.call("dataset", "evict", "--unused-for", "30") == 0
    assert tuple(capsys.readouterr()) == ("", "nothing had to go\n")


def test_evicting_by_size_takes_the_least_recently_used_until_it_fits(
    world: World, cache: PlayedCache
) -> None:
    held = [hold(cache, str(days), days=days, pinned=days == 4) for days in range(5)]

    assert world.call("dataset", "evict", "--to", "6KiB") == 1
    assert set(cache.held) == {held[number].key for number in (0, 1, 4)}
    assert world.call("dataset", "evict", "--to", "6KiB") == 0


def test_a_transfer_is_shown_with_share_and_speed() -> None:
    progress = Progress(
        uri="https://me:secret@host/x?y", done_bytes=3 * 2**20, total_bytes=4 * 2**20
    )
    assert rendering.transfer(progress, 2) == "https://host/x?…: 3 MiB of 4 MiB, 75%, 1.5 MiB/s"
    unknown = Progress(uri="s3://b/x", done_bytes=5, total_bytes=None)
    assert rendering.transfer(unknown, 0) == "s3://b/x: 5 B"
    empty = Progress(uri="s3://b/x", done_bytes=0, total_bytes=0)
    assert rendering.transfer(empty, 0) == "s3://b/x: 0 B of 0 B, 100%"


def test_a_transfer_is_told_in_few_lines_where_no_line_can_be_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = ManualClock(NOON)
    with transfers.TransferView(clock) as view:
        for done in range(31):
            view.show(Progress(uri="s3://b/x", done_bytes=done, total_bytes=30))
            clock.advance(timedelta(seconds=1))

    assert capsys.readouterr().err.splitlines() == [
        "s3://b/x: 10 B of 30 B, 33%, 1 B/s",
        "s3://b/x: 20 B of 30 B, 67%, 1 B/s",
        "s3://b/x: 30 B of 30 B, 100%, 1 B/s",
    ]
