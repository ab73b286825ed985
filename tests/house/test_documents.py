"""Our documents are true: links lead somewhere, and commands are ones the program knows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from anubis.entrypoints.cli import lazy, legacy, overview

ROOT = Path(__file__).parents[2]
HIDDEN = {".git", ".venv", ".pytest_cache", ".hypothesis", "node_modules", "build", "dist"}
DOCUMENTS = sorted(
    file for file in ROOT.rglob("*.md") if not HIDDEN & set(file.relative_to(ROOT).parts)
)

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", flags=re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _prose(file: Path) -> str:
    return FENCED.sub("", file.read_text("utf-8"))


def _anchors(file: Path) -> set[str]:
    """The addresses of a document's headings, made the way forges make them."""
    titles = (re.sub(r"[^\w\s-]", "", title.lower()) for title in HEADING.findall(_prose(file)))
    return {title.strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(_prose(document)):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in _anchors(target), f"{link}: no such heading"


def _links(document: Path) -> set[Path]:
    paths = (link.partition("#")[0] for link in LINK.findall(_prose(document)))
    return {(document.parent / path).resolve() for path in paths if path and "://" not in path}


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, pending = set[Path](), [ROOT / "README.md"]
    while pending:
        document = pending.pop()
        reached.add(document)
        pending += [link for link in _links(document) - reached if link in DOCUMENTS]

    lonely = {file for file in DOCUMENTS if file.is_relative_to(ROOT / "docs")} - reached
    assert [_name(file) for file in sorted(lonely)] == []


def _anubis_calls(line: str) -> list[list[str]]:
    """The arguments of every call of ``anubis`` in one line of shell."""
    calls = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word and set(word) <= set("|&;()"):
            calls.append(words)
            words = []
        else:
            words.append(word)
    return [call[1:] for call in map(_without_prefix, calls) if call and _is_anubis(call[0])]


def _without_prefix(words: list[str]) -> list[str]:
    """Drop ``NAME=value`` in front, and redirections behind."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    for index, word in enumerate(words):
        if set(word) <= set("<>"):
            return words[:index]
    return words


def _is_anubis(word: str) -> bool:
    return word == "anubis" or word.endswith("/anubis")


def _check(arguments: list[str]) -> None:
    """Raise unless the command line would be understood."""
    if overview.answer(arguments) is not None:
        return
    if legacy.is_legacy(arguments):
        legacy.translate(arguments)
        return
    context = click.Context(lazy.group)
    command = lazy.group.get_command(context, arguments[0])
    assert command is not None, f"there is no 'anubis {arguments[0]}'"
    if {"-h", "--help"} & set(arguments):
        return
    parser = command.make_parser(click.Context(command, parent=context, info_name=arguments[0]))
    parser.parse_args(list(arguments[1:]))


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_every_command_shown_exists(
    document: Path, commands_of: Callable[[Path], list[str]]
) -> None:
    for line in commands_of(document):
        for arguments in _anubis_calls(line):
            try:
                _check(arguments)
            except click.ClickException as error:
                pytest.fail(f"{line}: {error.format_message()}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_every_make_target_shown_exists(
    document: Path, commands_of: Callable[[Path], list[str]]
) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))

    shown = [
        word
        for line in commands_of(document)
        if (words := shlex.split(line, comments=True)) and words[0] == "make"
        for word in words[1:]
        if word.isalpha()
    ]

    assert set(shown) - targets == set()


def test_the_check_of_commands_finds_what_does_not_exist() -> None:
    [[verb, *_]] = _anubis_calls("ANUBIS_SLOTS=2 anubis frobnicate x.toml > out.txt")
    assert verb == "frobnicate"
    with pytest.raises(AssertionError, match="frobnicate"):
        _check(["frobnicate"])
    with pytest.raises(click.NoSuchOption):
        _check(["list", "--frobnicate"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_documents_are_plain(document: Path) -> None:
    """Words that blame a reader who finds something hard."""
    banned = re.compile(r"\b(simply|just|obviously|of course|easily|trivial(ly)?)\b", re.IGNORECASE)

    assert [match[0] for match in banned.finditer(_prose(document))] == []
