"""Script mode: code that is submitted with a descriptor, from one command to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Home, Service, _remote_home

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")

DESCRIPTOR = """\
spec_version = "0.1.0"

[info]
description = "For an acceptance test"

[info.labels]
task_name = "coded"

[ml]
benchmark_code = "sh $(BAI_SCRIPTS_PATH)/src/main.sh"
"""
CODE = "elsewhere/src"
FILES = {
    "main.sh": '. "$BAI_SCRIPTS_PATH/src/lib/words.sh"\necho "$WORD"\npwd > "$0.ran"\n',
    "lib/words.sh": "WORD=first\n",
    "__pycache__/x.pyc": "left out",
}


def write(home: Home) -> None:
    """A descriptor, and code that is not beside it."""
    for name, text in FILES.items():
        place = home.folder / CODE / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    # No other test has the same code: a service keeps it longer than the runs.
    (home.folder / CODE / "whose").write_text(str(home.folder))
    (home.folder / "coded.toml").write_text(DESCRIPTOR)


@pytest.fixture
def coded(home: Home) -> Home:
    """A home with them."""
    write(home)
    return home


def archives(home: Home) -> set[str]:
    """What is kept, by whoever keeps it."""
    folder = home.path / "scripts"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def document(home: Home, run: str = "last") -> Any:
    return json.loads(home.ask("show-descriptor", run, "--json"))


def change_the_code(home: Home) -> None:
    (home.folder / CODE / "lib" / "words.sh").write_text("WORD=second\n")


def test_a_run_finds_the_code_that_was_submitted_with_it(coded: Home) -> None:
    result = coded.call("run", "--script", CODE, "coded.toml")
    assert result.returncode == 0, result.stdout.decode() + result.stderr.decode()
    assert f"{CODE}: 3 files of code".encode() in result.stderr
    assert coded.ask("logs", "last", "--stream", "stdout") == "first\n"
    assert (coded.folder / "coded.toml").read_text() == DESCRIPTOR
    assert not list((coded.folder / CODE).rglob("*.ran")), "the run works on a copy"


def test_only_what_is_new_is_sent(coded: Home) -> None:
    before = archives(coded)
    first = coded.call("submit", "coded.toml", "--script", CODE)
    assert b"bytes sent" in first.stderr
    [name] = archives(coded) - before
    (coded.folder / CODE / "main.sh").touch()
    second = coded.call("submit", "coded.toml", "--script", f"./{CODE}/")
    assert b"known already" in second.stderr
    assert archives(coded) - before == {name} == {document(coded)["script"]}
    change_the_code(coded)
    third = coded.call("submit", "coded.toml", "--script", CODE)
    assert b"bytes sent" in third.stderr
    assert len(archives(coded) - before) == 2


def test_an_archive_that_is_kept_can_be_submitted_as_it_is(coded: Home) -> None:
    before = archives(coded)
    coded.ask("submit", "coded.toml", "--script", CODE)
    [name] = archives(coded) - before
    (coded.folder / name).write_bytes((coded.path / "scripts" / name).read_bytes())
    result = coded.call("run", "coded.toml", "--script", name)
    assert result.returncode == 0, result.stderr.decode()
    assert f"{name}: 3 files of code, known already".encode() in result.stderr
    assert coded.ask("logs", "last", "--stream", "stdout") == "first\n"
    assert archives(coded) - before == {name}


def test_a_run_is_repeated_with_its_code_or_with_other_code(coded: Home) -> None:
    first = coded.ask("submit", "coded.toml", "--script", CODE).strip()
    coded.wait_for("SUCCEEDED", "status", first)
    change_the_code(coded)
    assert coded.call("run", first).returncode == 0
    assert coded.ask("logs", "last", "--stream", "stdout") == "first\n"
    assert document(coded)["script"] == document(coded, first)["script"]
    assert coded.call("run", first, "--script", CODE).returncode == 0
    assert coded.ask("logs", "last", "--stream", "stdout") == "second\n"


def test_a_schedule_fires_with_the_code_it_was_submitted_with(coded: Home) -> None:
    path = coded.folder / "coded.toml"
    path.write_text(DESCRIPTOR.replace("[info]\n", '[info]\nscheduling = "@yearly"\n', 1))
    schedule = coded.ask("submit", "coded.toml", "--script", CODE).strip()
    change_the_code(coded)
    assert coded.call("schedule", "run", schedule, "--watch").returncode == 0
    assert coded.ask("logs", "last", "--stream", "stdout") == "first\n"


def test_the_original_flag_means_the_same(coded: Home) -> None:
    result = coded.call("--submit", "coded.toml", "--script", CODE, "--watch", "--terminate")
    assert result.returncode == 0, result.stderr.decode()
    assert coded.ask("logs", "last", "--stream", "stdout") == "first\n"
    assert (coded.folder / "coded.toml").read_text() == DESCRIPTOR


def _own_archive(home: Home) -> None:
    path = home.folder / "coded.toml"
    path.write_text(f'{DESCRIPTOR}[ml.script]\nscript = "{"0" * 40}.tar"\n')


def _link_out(home: Home) -> None:
    (home.folder / CODE / "out").symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("prepare", "words", "said"),
    [
        (None, ["--script", "nothing"], "nothing: found nothing, expected a file or folder"),
        (None, ["--script", CODE, "--script", CODE], "give it once"),
        (None, ["--script", "/dev/null"], "/dev/null: found a device"),
        (_own_archive, ["--script", CODE], "expected one of them"),
        (_link_out, ["--script", CODE], "'src/out' is a link out of the archive's folder"),
    ],
)
def test_what_cannot_be_submitted_is_said_and_nothing_is_kept(
    coded: Home, prepare: Any, words: list[str], said: str
) -> None:
    before = archives(coded)
    if prepare is not None:
        prepare(coded)
    result = coded.call("submit", "coded.toml", *words)
    assert result.returncode == 2
    assert said in result.stderr.decode()
    assert result.stdout == b""
    assert archives(coded) == before
    assert coded.ask("list", "--ids") == ""


def test_code_that_is_needed_and_not_given_is_missed_by_name(coded: Home) -> None:
    (coded.folder / "coded.toml").write_text(DESCRIPTOR.replace("sh $", "cat $"))
    result = coded.call("submit", "coded.toml")
    assert result.returncode == 2
    assert b"$(BAI_SCRIPTS_PATH)" in result.stderr


def test_a_service_is_asked_about_code_each_time_and_sent_it_once(
    tmp_path: Path, service: Service
) -> None:
    with _remote_home(tmp_path, service) as home:
        write(home)
        for _ in range(2):
            home.ask("submit", "coded.toml", "--script", CODE)
        name = document(home)["script"]
    lines = (service.folder / "service.log").read_text().splitlines()
    about = [line for line in lines if f"/api/v1/scripts/{name}" in line]
    assert [("HEAD" in line, "404" in line) for line in about] == [
        (True, True),
        (False, False),
        (True, False),
    ]
