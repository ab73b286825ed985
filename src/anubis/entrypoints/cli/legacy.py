"""The original client's flags, spoken with today's verbs: ``anubis --submit f.toml --watch``.

One table says what each flag becomes. Flags about the original client's own installation are
understood and declined. Pure: words in, commands out.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
from collections.abc import Mapping, Sequence

from anubis.domain.errors import UserError


class Takes(enum.Enum):
    """Whether a flag is followed by a value."""

    NOTHING = enum.auto()
    MAYBE = enum.auto()  #: a run, else the last one; an endpoint, else the current one
    VALUE = enum.auto()
    SPARE = enum.auto()  #: a word that no other flag wants


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """What an original flag becomes."""

    takes: Takes = Takes.NOTHING
    verb: tuple[str, ...] = ()  #: the command it becomes; empty: it only changes others
    options: tuple[str, ...] = ()  #: after the value
    declined: str = ""  #: why it is not done, and what to do instead


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A flag as found on the command line."""

    name: str
    flag: Flag
    value: str | None


_FETCH = Flag(
    declined="this client is a Python package: your package manager replaces it, not the service"
)
_PING = Flag(verb=("ping",))
_UNSET_ID = Flag(verb=("client-id", "--unset"))
_MODIFIER = Flag()
_CANCEL = Flag(takes=Takes.VALUE, verb=("cancel",))
_PURGE = Flag(takes=Takes.VALUE, verb=("purge",))
_SHOW = Flag(takes=Takes.MAYBE, verb=("show-descriptor",))
_WRITE = Flag(takes=Takes.MAYBE, verb=("show-descriptor",), options=("--write", "descriptor.toml"))
_RESULTS = Flag(takes=Takes.MAYBE, verb=("logs",), options=("--stream", "stdout"))
_INSPECT = Flag(
    takes=Takes.VALUE,
    declined="events have numbers here, not message ids; 'anubis status RUN --json' shows them all",
)

SCRIPT = "--script"
"""What to submit beside a descriptor: no command of its own, but part of ``--submit``."""

FLAGS: Mapping[str, Flag] = {
    "--submit": Flag(takes=Takes.VALUE, verb=("submit",)),
    "--status": Flag(takes=Takes.MAYBE, verb=("status",)),
    "--watch": Flag(takes=Takes.SPARE, verb=("watch",)),
    "--results": _RESULTS,
    "--result": _RESULTS,
    "--cancel": _CANCEL,
    "--abort": _CANCEL,
    "--purge": _PURGE,
    "--cancel*": _PURGE,
    "--abort*": _PURGE,
    "--show-descriptor": _SHOW,
    "--show-desc": _SHOW,
    "--write-descriptor": _WRITE,
    "--write-desc": _WRITE,
    "--history": Flag(verb=("history",)),
    "--last-action-id": Flag(verb=("history",), options=("--limit", "1", "--ids")),
    "--version": Flag(verb=("version",)),
    "-v": Flag(verb=("version",)),
    "--help": Flag(verb=("--help",)),
    "-h": Flag(verb=("--help",)),
    "--banner": Flag(verb=("version",)),
    "--check-prerequisites": Flag(verb=("doctor",)),
    "--register": Flag(takes=Takes.VALUE, verb=("register",)),
    "--unregister": Flag(takes=Takes.MAYBE, verb=("unregister",)),
    "--show-registered-service-endpoint": Flag(verb=("endpoint",)),
    "--show-registered-service-endpoint-history": Flag(verb=("endpoint", "--history")),
    "--ping": _PING,
    "--ping-service-endpoint": _PING,
    "--get-client-id": Flag(verb=("client-id",)),
    "--set-client-id": Flag(takes=Takes.VALUE, verb=("client-id", "--set")),
    "--unset-client-id": _UNSET_ID,
    "--reset-client-id": _UNSET_ID,
    # Modifiers. Ours always stops watching at the end, caches nothing and asks nothing.
    "--terminate": _MODIFIER,
    "--tail": _MODIFIER,
    "--sync-data": _MODIFIER,
    "--force": _MODIFIER,
    "--verbose": _MODIFIER,
    "--debug": _MODIFIER,
    SCRIPT: Flag(takes=Takes.VALUE),
    # Understood, and declined.
    "--inspect": _INSPECT,
    "-i": _INSPECT,
    "--sync-version": _FETCH,
    "--upgrade": _FETCH,
    "--env-setup": Flag(
        declined="no conda environment is needed; 'anubis doctor' says whether all is in place"
    ),
    "--legend": Flag(
        declined="states are written out in words here, there are no symbols to learn"
    ),
}
"""Every flag of the original client, version 0.6.2."""


def is_legacy(arguments: Sequence[str]) -> bool:
    """Whether a command line is in the original spelling: it starts with a flag, not a verb."""
    return bool(arguments) and arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")


def translate(arguments: Sequence[str]) -> list[list[str]]:
    """Give the commands to call, in order. Raises UserError for what cannot be done."""
    given = _read(arguments)
    for item in given:
        if item.flag.declined:
            raise UserError(f"{item.name}: {item.flag.declined}")
    commands = [_command(item) for item in given if item.flag.verb]
    if not commands:
        raise UserError(f"{' '.join(arguments)}: nothing to do; 'anubis --help' lists the commands")
    return _with_code(_joined(commands), [item for item in given if item.name == SCRIPT])


def _with_code(commands: list[list[str]], named: Sequence[Given]) -> list[list[str]]:
    """The same commands, of which the submission has its code."""
    if not named:
        return commands
    if len(named) > 1:
        raise UserError(f"{SCRIPT}: give it once; several files are submitted as one folder")
    if all(command[0] != "submit" for command in commands):
        raise UserError(f"{SCRIPT}: it belongs to --submit, which is missing")
    words = [SCRIPT, *_command(named[0])]
    return [[*one, *words] if one[0] == "submit" else one for one in commands]


def _read(arguments: Sequence[str]) -> list[Given]:
    """The flags with their values. A value may stand apart: ``--status --watch ID``."""
    given, words = list[Given](), list(arguments)
    while words:
        word = words.pop(0)
        name, assigned, value = word.partition("=")
        flag = FLAGS.get(name)
        if flag is None:
            _hand_out(word, given)
        elif assigned:
            given.append(Given(name=name, flag=flag, value=value))
        elif flag.takes in _TAKES_NEXT and words and not words[0].startswith("-"):
            given.append(Given(name=name, flag=flag, value=words.pop(0)))
        else:
            given.append(Given(name=name, flag=flag, value=None))
    return given


def _hand_out(word: str, given: list[Given]) -> None:
    """Give a word to a flag before it that has no value, one that needs a value first.

    Never to one that comes later: ``--watch ID --purge`` must not purge.
    """
    lacking = [index for index, item in enumerate(given) if _lacks(item)]
    if word.startswith("-") or not lacking:
        raise UserError(_unknown(word))
    index = min(lacking, key=lambda one: _NEED.index(given[one].flag.takes))
    given[index] = dataclasses.replace(given[index], value=word)


def _lacks(item: Given) -> bool:
    return item.value is None and item.flag.takes is not Takes.NOTHING


_TAKES_NEXT = (Takes.MAYBE, Takes.VALUE)
_NEED = (Takes.VALUE, Takes.MAYBE, Takes.SPARE)


def _command(item: Given) -> list[str]:
    if item.flag.takes is Takes.VALUE and not item.value:
        raise UserError(f"{item.name}: a value is missing")
    value = [item.value] if item.value else []
    return [*item.flag.verb, *value, *item.flag.options]


def _joined(commands: list[list[str]]) -> list[list[str]]:
    """Make one command of a submission, or a status, and the watching that belongs to it."""
    verbs = [command[0] for command in commands]
    for verb in ("submit", "status"):
        if verbs.count(verb) > 1:
            raise UserError(f"--{verb}: give it once; for several, call 'anubis {verb}' for each")
    if "watch" in verbs and ("submit" in verbs or "status" in verbs):
        main = _watched(commands, "submit" if "submit" in verbs else "status")
    elif "submit" in verbs and "status" in verbs:
        main = [*commands[verbs.index("submit")], "--status"]
    else:
        return commands
    rest = [command for command in commands if command[0] not in ("watch", "status", "submit")]
    return [main, *rest]


def _watched(commands: Sequence[list[str]], verb: str) -> list[str]:
    """The submission or the status, and the watching that belongs to it."""
    [main] = [command for command in commands if command[0] == verb]
    named = [word for command in commands if command[0] == "watch" for word in command[1:]]
    if named and len(main) > 1:
        raise UserError(f"--watch: {named[0]!r} is one name too many")
    return [*main, "--watch"] if verb == "submit" else ["watch", *main[1:], *named]


def _unknown(name: str) -> str:
    if not name.startswith("-"):
        return f"{name!r} follows no flag that takes a value; 'anubis --help' lists the commands"
    close = difflib.get_close_matches(name, FLAGS, n=1)
    hint = f"did you mean {close[0]}?" if close else "'anubis --help' lists the commands"
    return f"no such flag: {name} ({hint})"
