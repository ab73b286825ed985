"""The original client's flags become today's verbs, or say clearly why not."""

from __future__ import annotations

import pytest

from anubis.domain.errors import UserError
from anubis.entrypoints.cli import legacy

RUN = "0190a2b4-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("--submit f.toml", [["submit", "f.toml"]]),
        ("--submit=f.toml", [["submit", "f.toml"]]),
        ("--submit f.toml --watch --status", [["submit", "f.toml", "--watch"]]),
        ("--watch --status --submit f.toml", [["submit", "f.toml", "--watch"]]),
        ("--submit f.toml --watch --terminate", [["submit", "f.toml", "--watch"]]),
        ("--submit f.toml --status", [["submit", "f.toml", "--status"]]),
        ("--verbose --debug --force --submit f.toml", [["submit", "f.toml"]]),
        (f"--submit {RUN}", [["submit", RUN]]),
        ("--status", [["status"]]),
        (f"--status {RUN}", [["status", RUN]]),
        (f"--status {RUN} --watch", [["watch", RUN]]),
        (f"--status --watch {RUN}", [["watch", RUN]]),
        (f"--watch {RUN} --status", [["watch", RUN]]),
        (f"--watch {RUN}", [["watch", RUN]]),
        (f"--status --verbose {RUN}", [["status", RUN]]),
        ("--submit --watch f.toml", [["submit", "f.toml", "--watch"]]),
        (f"--purge --verbose {RUN}", [["purge", RUN]]),
        ("--status --tail --sync-data", [["status"]]),
        ("--watch", [["watch"]]),
        ("--results", [["logs", "--stream", "stdout"]]),
        (f"--result {RUN}", [["logs", RUN, "--stream", "stdout"]]),
        (f"--cancel {RUN}", [["cancel", RUN]]),
        (f"--abort {RUN}", [["cancel", RUN]]),
        (f"--purge {RUN}", [["purge", RUN]]),
        (f"--cancel* {RUN}", [["purge", RUN]]),
        (f"--abort* {RUN}", [["purge", RUN]]),
        ("--show-descriptor", [["show-descriptor"]]),
        (f"--show-desc {RUN}", [["show-descriptor", RUN]]),
        ("--write-descriptor", [["show-descriptor", "--write", "descriptor.toml"]]),
        ("--history", [["history"]]),
        ("--last-action-id", [["history", "--limit", "1", "--ids"]]),
        ("--verbose --version", [["version"]]),
        ("--verbose -h", [["--help"]]),
        ("--check-prerequisites", [["doctor"]]),
        ("--register host:80", [["register", "host:80"]]),
        ("--register host:80 --ping", [["register", "host:80"], ["ping"]]),
        ("--unregister", [["unregister"]]),
        ("--unregister host:80", [["unregister", "host:80"]]),
        ("--show-registered-service-endpoint", [["endpoint"]]),
        ("--show-registered-service-endpoint-history", [["endpoint", "--history"]]),
        ("--ping", [["ping"]]),
        ("--ping-service-endpoint", [["ping"]]),
        ("--get-client-id", [["client-id"]]),
        ("--set-client-id me", [["client-id", "--set", "me"]]),
        ("--unset-client-id", [["client-id", "--unset"]]),
        ("--reset-client-id", [["client-id", "--unset"]]),
        ("--history --last-action-id", [["history"], ["history", "--limit", "1", "--ids"]]),
        ("--submit f.toml --script src", [["submit", "f.toml", "--script", "src"]]),
        ("--script=src --submit f.toml", [["submit", "f.toml", "--script", "src"]]),
        (
            "--submit f.toml --script src --status --watch --purge x",
            [["submit", "f.toml", "--watch", "--script", "src"], ["purge", "x"]],
        ),
        (f"--cancel {RUN} --status", [["cancel", RUN], ["status"]]),
    ],
)
def test_a_flag_becomes_a_verb(line: str, commands: list[list[str]]) -> None:
    words = line.split()
    assert legacy.is_legacy(words)
    assert legacy.translate(words) == commands


@pytest.mark.parametrize(
    "flag",
    [
        "--sync-version",
        "--upgrade",
        "--env-setup",
        "--inspect 0190a2b4",
        "--legend",
    ],
)
def test_what_is_not_done_is_declined_by_name(flag: str) -> None:
    with pytest.raises(UserError, match=f"^{flag.split()[0]}: "):
        legacy.translate(flag.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--submt f.toml", "no such flag: --submt .did you mean --submit"),
        ("--zzz", "no such flag: --zzz .'anubis --help'"),
        ("--submit", "--submit: a value is missing"),
        ("--submit --watch", "--submit: a value is missing"),
        ("--cancel", "--cancel: a value is missing"),
        ("--register", "--register: a value is missing"),
        ("--verbose", "nothing to do"),
        ("--history f.toml", "'f.toml' follows no flag"),
        ("--submit a --submit b", "give it once"),
        ("--submit a --script", "--script: a value is missing"),
        ("--submit a --script b --script c", "--script: give it once"),
        ("--history --script b", "--script: it belongs to --submit"),
        ("--status a --watch b", "--watch: 'b' is one name too many"),
        ("--watch a --purge", "--purge: a value is missing"),
    ],
)
def test_a_mistake_is_explained(line: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        legacy.translate(line.split())


@pytest.mark.parametrize("words", [[], ["run", "--json"], ["--help"], ["-h"]])
def test_modern_words_are_left_alone(words: list[str]) -> None:
    assert not legacy.is_legacy(words)
