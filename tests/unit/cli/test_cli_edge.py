"""Whatever goes wrong, a user gets a sentence and an exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid, EngineUnavailable, RunNotFound, UserError
from anubis.domain.problem import Problem
from anubis.domain.run import RunState
from anubis.entrypoints.cli import documents, edge, exits, lazy, session, terminal
from anubis.stages.descriptor import reading

PROBLEM = Problem(file="f.toml", line=1, column=2, field="a", found="x", expected="y")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """``anubis status`` raises what a test puts here."""
    errors: list[BaseException] = []

    def read(*_: object) -> None:
        raise errors[0]

    monkeypatch.setattr(session, "read", read)
    monkeypatch.delenv(edge.DEBUG, raising=False)
    return errors


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RunNotFound("no run"), 2, "anubis: no run\n"),
        (DescriptorInvalid([PROBLEM]), 2, "f.toml:1:2: error: a: found x, expected y\n"),
        (EngineUnavailable("gone"), 3, "anubis: gone\n"),
        (ExceptionGroup("x", [RunNotFound("inner")]), 2, "anubis: inner\n"),
        (ZeroDivisionError("x"), 3, "anubis: internal error: ZeroDivisionError: x (set"),
        (PermissionError(13, "no", "/h/logs/a"), 3, "anubis: /h/logs/a: permission denied; has"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_becomes_a_sentence_and_a_code(
    failing: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    failing.append(error)
    assert edge.main(["status"]) == code
    assert capsys.readouterr().err.lstrip("\n").startswith(said)


def test_the_traceback_is_shown_to_those_who_ask(
    failing: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing.append(ZeroDivisionError("x"))
    monkeypatch.setenv(edge.DEBUG, "1")
    with pytest.raises(ZeroDivisionError):
        edge.main(["status"])
    monkeypatch.delenv(edge.DEBUG)
    with pytest.raises(ZeroDivisionError):
        edge.main(["--debug", "--status"])


@pytest.mark.parametrize(
    "words", [["--nonsense"], ["nonsense"], ["status", "--nonsense"], ["status", "a", "b"]]
)
def test_bad_usage_has_exit_code_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert edge.main(words) == exits.BAD_USAGE
    assert "nonsense" in (said := capsys.readouterr()).err or "b" in said.err
    assert said.out == ""


@pytest.mark.parametrize("state", [state for state in RunState if state.is_terminal])
def test_every_end_has_an_exit_code(state: RunState) -> None:
    assert exits.of(state) in (0, 1, 3, 130)


def test_help_of_every_command_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in lazy.group.list_commands(lazy.group.make_context("anubis", ["version"])):
        assert edge.main([verb, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: anubis {verb}")


class Terminal:
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "lively"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_a_plain_terminal_is_left_plain(environ: dict[str, str], lively: bool) -> None:
    assert terminal.is_lively(Terminal(), environ) is lively  # type: ignore[arg-type]  # enough of one


def test_a_document_remembers_its_name_as_given_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("sub/d.toml").write_bytes(b"x")
    document = documents.read("sub/d.toml")
    assert (document.name, document.directory) == ("sub/d.toml", str(tmp_path / "sub"))
    assert document.content == b"x"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.toml", "missing.toml: found no file of this name"),
        ("empty", "empty: found a folder, expected a descriptor$"),
        ("full", "did you mean 'full/descriptor.toml'"),
        ("pipe", "pipe: found a pipe, expected a descriptor .give '-'"),
        ("/dev/null", "/dev/null: found a device"),
    ],
)
def test_what_is_no_file_is_refused_at_once_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("full").mkdir()
    Path("full/descriptor.toml").touch()
    os.mkfifo("pipe")
    with pytest.raises(UserError, match=said):
        documents.read(name)


def test_a_file_that_is_too_large_is_refused_in_the_words_of_the_stage(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    for size in (reading.MAX_BYTES + 1, 40 << 20):
        path.write_bytes(b"")
        os.truncate(path, size)
        with pytest.raises(DescriptorInvalid) as early:
            documents.read(str(path))
        given = Document(name=str(path), directory="", content=bytes(size))
        with pytest.raises(DescriptorInvalid) as late:
            reading.read(given)
        assert str(early.value) == str(late.value)


def test_a_person_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert session.person() == f"uid {os.getuid()}"
