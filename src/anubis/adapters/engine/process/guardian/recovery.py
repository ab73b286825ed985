"""Finish a run whose shim died before it could: kill what is left, save its output, say so.

Used by the zygote, which adopts a dead shim's processes and still holds its pipes, and by an
engine that finds a run whose zygote is gone too. The run's lock lets only one of them at a time.
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH112, PTH116, PTH208

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator

from anubis.adapters.engine.process.guardian import channels, ending, files, journal, tree

Finder = Callable[[], Iterable[int]]

KILL_SECONDS = 10.0
STILL_SECONDS = 1.0
PAUSE_SECONDS = 0.005
SLACK_SECONDS = 2.0
"""A shim writes at least every second; the kernel tells its boot to the second."""


def recover(directory: str, reason: str, also: Finder = tuple) -> bool:
    """Give a run without a shim its status; False if somebody else is at it.

    ``also`` finds more processes of the run than those that carry its mark.
    Raises OSError if the disk does not take it.
    """
    if not os.path.isdir(directory) or files.has_ended(directory):
        return True
    if files.is_container(directory):  # it goes on without a guard, until somebody asks for another
        return True
    lock = files.take_lock(directory)
    if lock is None:
        return False
    try:
        if not files.has_ended(directory):
            _bury(directory, reason, also)
    finally:
        os.close(lock)
    return True


def _bury(directory: str, reason: str, also: Finder) -> None:
    """Under the lock: nobody can start this run any more, and nobody else writes its files."""
    session = session_of(directory)
    try:
        book = journal.Journal.create(directory)
    except FileExistsError:
        book = journal.Journal.reopen(directory)
    run_id, unit = files.owner(directory)
    try:
        _save_and_kill(
            list(_open_streams(directory)),
            book,
            lambda: {*marked(run_id, session, unit), *also()},
        )
    finally:
        book.close()
    defect = files.read_json(files.live(directory), files.DEFECT)
    message = f"{reason}: {defect['message']}" if defect else reason
    ending.Ending(unit, ending.LOST, message).write(directory)


def _save_and_kill(streams: list[channels.Channel], book: journal.Journal, find: Finder) -> None:
    """Still the processes, save what they wrote, then kill them: should we be killed in between,
    they still hold their pipes for the next who tries. A full disk does not spare them.
    """
    still(find)
    try:
        try:
            for channel in streams:
                _save(channel, book)
        finally:
            kill(find)
        for channel in streams:
            _save(channel, book)
            channel.sync()
    finally:
        for channel in streams:
            channel.close()


def hold(directory: str) -> list[int]:
    """Open the pipes of a run: what is in them is kept while anybody has them open."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    place = files.live(directory)
    held: list[int] = []
    try:
        for fifo, _ in files.STREAMS:
            held.append(os.open(f"{place}/{fifo}", flags))
    except OSError:
        for descriptor in held:
            os.close(descriptor)
        raise
    return held


def _open_streams(directory: str) -> Iterator[channels.Channel]:
    for number in range(len(files.STREAMS)):
        # A FIFO is missing when the engine died before it had made everything.
        with contextlib.suppress(FileNotFoundError):
            yield channels.Channel(directory, number)


def _save(channel: channels.Channel, book: journal.Journal) -> None:
    """Move what is left in a pipe. It is there as long as anybody holds the FIFO open."""
    channel.resume()
    while channel.has_data() and channel.keep(channels.PIPE_BYTES):
        book.mark(channel.number, channel.kept)


def still(find: Finder) -> None:
    """SIGSTOP what ``find`` finds, until it finds nothing new or patience ends."""
    give_up = time.monotonic() + STILL_SECONDS
    known: set[int] = set()
    while (found := set(find()) - known) and time.monotonic() < give_up:
        tree.send(signal.SIGSTOP, list(found))
        known |= found


def kill(find: Finder) -> None:
    """SIGKILL what ``find`` finds, until it finds nothing or patience ends."""
    give_up = time.monotonic() + KILL_SECONDS
    while (found := list(find())) and time.monotonic() < give_up:
        tree.send(signal.SIGKILL, found)
        time.sleep(PAUSE_SECONDS)


class Session:
    """The session of a run's program, as long as it can be told from a later one of that number."""

    __slots__ = ("first", "last", "number")

    def __init__(self, number: int, first: int, last: int) -> None:
        self.number = number
        self.first = first  #: when the program began, in clock ticks since boot
        self.last = last  #: when its shim was last heard of

    def has(self, process: int) -> bool:
        """Whether a process belongs to it."""
        fields = tree.stat(process)
        return (
            fields is not None
            and int(fields[tree.SESSION]) == self.number
            and self.first <= int(fields[tree.START_TICKS]) <= self.last
        )


def session_of(directory: str) -> Session | None:
    """The session the program of a dead shim had.

    Its number may belong to somebody else by now, but only to processes that began after the shim
    last wrote: while it did, the session existed. We must not kill a stranger.
    """
    started = journal.find_started(directory)
    if started is None:
        return None
    last = os.stat(f"{directory}/{files.JOURNAL}").st_mtime + SLACK_SECONDS
    return Session(*started, tree.ticks_at(last))


def marked(run_id: str, session: Session | None, unit: str | None = None) -> Iterator[int]:
    """Living processes of a run, or of one unit of it, wherever they hang in the tree.

    Known by the variables every program gets, or by its session: that one also holds children
    that were started with an empty environment.
    """
    marks = {f"ANUBIS_RUN_ID={run_id}".encode()}
    if unit is not None:
        marks.add(f"ANUBIS_UNIT={unit}".encode())
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        process = int(name)
        is_ours = _carries(process, marks) or (session is not None and session.has(process))
        if is_ours and tree.is_running(process):
            yield process


def _carries(process: int, marks: set[bytes]) -> bool:
    try:
        with os.fdopen(os.open(f"/proc/{process}/environ", os.O_RDONLY), "rb") as file:
            return marks.issubset(file.read().split(b"\0"))
    except OSError:  # gone, or not ours
        return False
