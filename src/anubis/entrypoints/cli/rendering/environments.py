"""The environment of a run in a few words, for ``status``; ``--json`` has all of it.

A fingerprint is written by an engine, perhaps of another version: whatever is missing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from anubis.domain.document import Fingerprint
from anubis.entrypoints.cli.rendering import text

Facts = list[tuple[str, str]]


def facts(fingerprint: Fingerprint | None) -> Facts:
    """Machine, interpreter and code, each as one line."""
    if fingerprint is None:
        return []
    machine, moment = json.loads(fingerprint.machine), json.loads(fingerprint.moment)
    return [
        ("machine", ", ".join(_machine(machine, moment))),
        ("python", _python(machine.get("python"))),
        ("code", _code(moment.get("git"))),
    ]


def _machine(machine: Mapping[str, Any], moment: Mapping[str, Any]) -> Iterator[str]:
    if cpu := machine.get("cpu"):
        yield text.printable(str(cpu))
    if cores := machine.get("logical_cores"):
        yield f"{cores} cores"
    if memory := machine.get("memory_bytes"):
        yield text.size(float(memory))
    for gpu in machine.get("gpus") or ():
        yield text.printable(str(gpu.get("name")))
    if governor := machine.get("governor"):
        yield f"governor {governor}"
    if load := moment.get("load"):
        yield f"load {load[0]:.2f} before the start"


def _python(python: Mapping[str, Any] | None) -> str:
    if not python or "version" not in python:
        return ""
    count = len(python.get("packages") or ())
    return f"{text.printable(str(python['version']))} with {count} packages"


def _code(git: Mapping[str, Any] | None) -> str:
    if not git or not git.get("commit"):
        return ""
    dirt = f", {git.get('changed_files')} files changed" if git.get("dirty") else ""
    branch = f" on {text.printable(str(git['branch']))}" if git.get("branch") else ""
    return f"commit {str(git['commit'])[:12]}{branch}{dirt}"
