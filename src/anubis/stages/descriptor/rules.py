"""What must go together: rules over more than one key.

They look at the table as it was written, not at the model, so that they are told together with
everything else that is wrong. Whatever has the wrong type is another problem, and skipped here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from anubis.domain.descriptor import Strategy
from anubis.stages.descriptor import wording
from anubis.stages.descriptor.reporting import Place


def inference_has_a_server(table: Mapping[str, object], place: Place) -> None:
    """The inference strategy measures a server, so there must be one."""
    if _strategy(table) in {Strategy.INFERENCE, "client_server"} and "server" not in table:
        place.child("hardware").child("strategy").refuse(
            "the strategy 'inference' without a [server] table",
            "a [server] table that says what is measured",
            "or use the strategy 'single_node'",
        )


def commands_are_well_quoted(table: Mapping[str, object], place: Place) -> None:
    """Commands are split as a shell would, so quotes must be balanced.

    With horovod the command is the text of a script, which is not split.
    """
    commands: list[tuple[str, ...]] = [
        ("server", "env", "start_command"),
        ("server", "env", "start_command_args"),
    ]
    if _strategy(table) != Strategy.HOROVOD:
        commands += [("ml", "benchmark_code"), ("ml", "args")]
    for path in commands:
        text = _at(table, *path)
        if isinstance(text, str):
            _check_quotes(text, Place(path=(*place.path, *path), report=place.report))


def _check_quotes(text: str, place: Place) -> None:
    try:
        shlex.split(text)
    except ValueError as error:
        escaped = "escaped" in str(error)
        place.refuse(
            wording.described(text),
            "a command whose quotes are balanced",
            "it ends with a backslash" if escaped else "a quote is opened and never closed",
        )


def a_framework_version_has_a_framework(table: Mapping[str, object], place: Place) -> None:
    """A version alone says nothing."""
    if table.get("framework_version") and not table.get("framework"):
        place.child("framework_version").refuse_key(
            "a framework_version without a framework", "a framework beside it"
        )


def _strategy(table: Mapping[str, object]) -> str:
    strategy = _at(table, "hardware", "strategy")
    return strategy if isinstance(strategy, str) else ""


def _at(value: object, *path: str) -> object:
    """What stands at a path, or None."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value
