"""Read the descriptor a user named: a file, standard input, or the one of an earlier run."""

from __future__ import annotations

import dataclasses
import os
import stat
import sys
from pathlib import Path

from anubis.bootstrap.application import Application
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid, RunNotFound, UserError
from anubis.domain.problem import Problem
from anubis.entrypoints.cli import terminal
from anubis.entrypoints.cli.rendering import states
from anubis.stages.descriptor.reading import MAX_BYTES

_WHOLE_ID = 36  # characters


class Unreadable(UserError):
    """There is no descriptor under this name. ``found`` is what there is instead."""

    def __init__(self, name: str, found: str, hint: str = "") -> None:
        self.found, self.hint = found, hint
        super().__init__(f"{name}: found {found}, expected a descriptor{hint and f' ({hint})'}")


class _Missing(Unreadable):
    """Nothing at all has this name."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The document that a name means."""

    document: Document
    is_repeat: bool = False  #: whether it is the one of a run, which is to be run again


async def find(application: Application, name: str) -> Found:
    """Give the document; what is no file may name a run whose descriptor is meant."""
    try:
        return Found(document=read(name))
    except _Missing:
        return Found(document=await _of_run(application, name), is_repeat=True)


async def _of_run(application: Application, name: str) -> Document:
    unknown = UserError(f"{name}: there is no such file, and no run whose id starts like this")
    try:
        run_id = await application.store.resolve(name)
    except RunNotFound:
        raise unknown from None
    if len(name) < _WHOLE_ID:
        terminal.say(f"{name}: no such file; repeating the run {states.short(run_id)}")
    return await application.store.document(run_id)


def read(name: str) -> Document:
    """Give the document in a file, or on standard input for ``-``.

    Raises Unreadable, or DescriptorInvalid for one that is too large to be read whole.
    """
    if name == "-":
        content = sys.stdin.buffer.read(MAX_BYTES + 1)
        _refuse_large("<stdin>", len(content), f"more than {MAX_BYTES:,} bytes")
        return Document(name="<stdin>", directory=str(Path.cwd()), content=content)
    try:
        content = _content(name)
    except (FileNotFoundError, NotADirectoryError):
        raise _Missing(name, "no file of this name") from None
    except OSError as error:
        raise Unreadable(name, f"a file that cannot be read: {error.strerror}") from error
    return Document(name=name, directory=str(Path(name).absolute().parent), content=content)


def _content(name: str) -> bytes:
    # Without blocking: opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        _refuse_other_than_files(name, status.st_mode)
        _refuse_large(name, status.st_size, f"a file of {status.st_size:,} bytes")
        return _whole(descriptor)
    finally:
        os.close(descriptor)


def _whole(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(MAX_BYTES + 1)


def _refuse_other_than_files(name: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        inside = Path(name) / "descriptor.toml"
        is_there = os.access(inside, os.R_OK) and inside.is_file()
        hint = f"did you mean '{inside}'?" if is_there else ""
        raise Unreadable(name, "a folder", hint)
    if not stat.S_ISREG(mode):
        found = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise Unreadable(name, found, "give '-' for standard input")


def _refuse_large(name: str, size: int, found: str) -> None:
    """The same limit and the same words as the stage ``descriptor``, before reading it all."""
    if size > MAX_BYTES:
        expected = f"a descriptor of at most {MAX_BYTES:,} bytes"
        problem = Problem(file=name, line=1, column=1, field="", found=found, expected=expected)
        raise DescriptorInvalid([problem])
