"""Data is fetched once, and every unit finds it under the path that its author wrote."""

from __future__ import annotations

import dataclasses

import pytest

from anubis.domain import blanks
from anubis.domain import descriptor as model
from anubis.domain.errors import UserError
from anubis.domain.plan import Fetch, Mount, Plan
from anubis.ports.engine import Capabilities
from anubis.stages.planning.planning import Context, plan

SHARED = Capabilities(
    name="process", strategies=frozenset(model.Strategy), needs_image=False, honours_affinity=True
)
ISOLATED = dataclasses.replace(SHARED, name="docker", needs_image=True, isolates=True)
CONTEXT = Context(directory="/here", environment={}, python="python")


def planned(
    *sources: model.Source,
    code: str = "run",
    engine: Capabilities = SHARED,
    directory: str = "/here",
) -> Plan:
    descriptor = model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        env=model.Environment(docker_image="image"),
        ml=model.MachineLearning(benchmark_code=code),
        data=model.Data(sources=sources),
    )
    return plan(descriptor, engine, dataclasses.replace(CONTEXT, directory=directory))


def at(path: str, src: str = "s3://a/b") -> model.Source:
    return model.Source(src=src, path=path)


def obstacles(*sources: model.Source) -> list[str]:
    with pytest.raises(UserError) as caught:
        planned(*sources)
    return str(caught.value).split("\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/data", "@"),
        ("/data/", "@/"),
        ("/data/x/y", "@/x/y"),
        ("--in=/data,/other", "--in=@,/other"),
        ("a:/data:b", "a:@:b"),
        ("file:///data/x", "file://@/x"),
        ("'/data'", "'@'"),
        ("/database", "/database"),
        ("/data.csv", "/data.csv"),
        ("/data-2", "/data-2"),
        ("/my/data", "/my/data"),
        ("./data", "./data"),
        ("data", "data"),
        ("http://host/data", "http://host/data"),
    ],
)
def test_whole_paths_are_replaced_where_nothing_can_be_mounted(written: str, meant: str) -> None:
    (unit,) = planned(at("/data"), code=f'run "{written}"').units
    assert unit.command[1] == meant.replace("@", blanks.data(0))
    (unit,) = planned(at("/data"), code=f'run "{written}"', engine=ISOLATED).units
    assert unit.command[1] == written


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/data", "/data"),
        ("/data/", "/data"),
        ("//data/./x", "/data/x"),
        ("~/data", "/root/data"),
        ("data/x", "/data/x"),
        ("data", "/data"),
    ],
)
def test_a_container_has_an_absolute_path_for_every_spelling(path: str, target: str) -> None:
    (unit,) = planned(at(path), code=f"run {target}/x", engine=ISOLATED).units
    assert unit.mounts == (Mount(source=blanks.data(0), target=target),)
    assert unit.command == ("run", f"{target}/x")
    (unit,) = planned(at(path), code=f"run {target}/x").units
    assert unit.command == ("run", f"{blanks.data(0)}/x")


@pytest.mark.parametrize("path", ["~/data", "data/x"])
def test_a_path_may_be_written_in_the_command_as_in_the_source(path: str) -> None:
    (unit,) = planned(at(path), code=f"run {path}").units
    assert unit.command == ("run", blanks.data(0))
    (unit,) = planned(at(path), code=f"run {path}", engine=ISOLATED).units
    assert unit.command == ("run", unit.mounts[0].target)


def test_the_longest_path_wins_whatever_the_order() -> None:
    sources = (at("/data/a"), at("/data/ab", "s3://a/c"))
    (unit,) = planned(*sources, code="run /data/ab /data/a").units
    assert unit.command == ("run", blanks.data(1), blanks.data(0))


def test_the_same_content_is_fetched_once() -> None:
    digits = "d41d8cd98f00b204e9800998ecf8427e"
    bare = model.Source(src="s3://a/b", path="/one", md5=digits)
    named = dataclasses.replace(bare, path="/two", md5=f"MD5:{digits.upper()}")
    unpacked = dataclasses.replace(bare, path="/three", unpack=True)
    made = planned(bare, named, unpacked, code="run /two", engine=SHARED)
    assert made.fetches == (
        Fetch(uri="s3://a/b", checksum=f"md5:{digits}", field="data.sources[0]"),
        Fetch(uri="s3://a/b", checksum=f"md5:{digits}", unpack=True, field="data.sources[2]"),
    )
    assert made.units[0].command == ("run", blanks.data(0))


def test_variables_tell_where_data_is_by_number_and_by_name() -> None:
    named = dataclasses.replace(at("/a"), id="train-set")
    again = dataclasses.replace(at("/b", "s3://b"), id="train.set")
    number = dataclasses.replace(at("/c", "s3://c"), id="0")
    (unit,) = planned(named, again, number, engine=ISOLATED).units
    assert {name: value for name, value in unit.environment.items() if "DATA" in name} == {
        "ANUBIS_DATA_0": "/a",
        "ANUBIS_DATA_TRAIN_SET": "/a",
        "ANUBIS_DATA_1": "/b",
        "ANUBIS_DATA_2": "/c",
    }


def test_the_path_of_a_file_starts_where_the_descriptor_is() -> None:
    assert planned(at("/a", "data/x.csv")).fetches[0].uri == "/here/data/x.csv"
    assert planned(at("/a", "../x.csv"), directory="/here/too").fetches[0].uri == "/here/x.csv"
    assert planned(at("/a", "/x.csv")).fetches[0].uri == "/x.csv"
    assert planned(at("/a", "file:x.csv")).fetches[0].uri == "file:x.csv"
    with pytest.raises(UserError, match=r"data.sources\[0\].src: found the relative path 'x.csv'"):
        planned(at("/a", "x.csv"), directory="")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "~/..", "/a/../b", "/proc/x", "/anubis", "/bai/scripts/x"),
        *("/bai", "/tmp", "/tmp/benchmark-ai/fifo"),
    ],
)
def test_a_path_that_no_container_could_have_is_refused(path: str) -> None:
    assert obstacles(at(path))[0].startswith("data.sources[0].path: found ")


def test_paths_that_clash_are_refused() -> None:
    (line,) = obstacles(at("/a"), at("/a/", "s3://other"))
    assert line.startswith("data.sources[1].path: found '/a', where data.sources[0] is already")
    (line,) = obstacles(at("/a/b"), at("/a", "s3://other"))
    assert "of which none is inside the other" in line
    assert planned(at("/a"), at("/a")).fetches == (Fetch(uri="s3://a/b", field="data.sources[0]"),)
