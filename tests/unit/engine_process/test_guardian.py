"""The small parts of the guardian: its words, its weight, its journal and its channels."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import anubis
from anubis.adapters.engine.process import following, removing
from anubis.adapters.engine.process.guardian import (
    channels,
    ending,
    files,
    journal,
    recovery,
    tree,
)
from anubis.domain.observation import EndCause, OutputChunk, ResourceReading, UnitEnded

SOURCE = str(Path(anubis.__file__).parent.parent)


def test_the_guardian_spells_causes_as_the_domain_does() -> None:
    of_clusters = {
        EndCause.NO_CAPACITY,
        EndCause.IMAGE_UNAVAILABLE,
        EndCause.DATA_INVALID,
        EndCause.NOT_BROUGHT,
        EndCause.EVICTED,
    }
    causes = [cause for cause in EndCause if cause not in of_clusters]
    assert [getattr(ending, cause.name) for cause in causes] == [cause.value for cause in causes]
    assert not [cause for cause in of_clusters if hasattr(ending, cause.name)]


def test_a_zygote_loads_nothing_heavy() -> None:
    program = (
        f"import sys; sys.path.append({SOURCE!r})\n"
        "import anubis.adapters.engine.process.guardian.zygote\n"
        "print(*sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True)
    loaded = set(answer.stdout.decode().split())
    assert "json" in loaded
    heavy = {"asyncio", "dataclasses", "datetime", "inspect", "pathlib", "socket", "typing"}
    assert loaded & heavy == set()
    assert not any(name.startswith("anubis.domain") for name in loaded)


def an_end(at: int = 0) -> UnitEnded:
    return UnitEnded(unit="benchmark", at=following.moment(at), cause=EndCause.LOST)


def test_only_one_journal_can_be_created(tmp_path: Path) -> None:
    journal.Journal.create(str(tmp_path)).close()
    with pytest.raises(FileExistsError):
        journal.Journal.create(str(tmp_path))


def test_a_torn_record_is_skipped_and_cut_off(tmp_path: Path) -> None:
    book = journal.Journal.create(str(tmp_path))
    book.started(12, 34)
    book.close()
    with (tmp_path / files.JOURNAL).open("ab") as file:
        file.write(b"torn")
    follower = following.Follower(tmp_path, "benchmark")
    assert len(list(follower.turn())) == 1
    again = journal.Journal.reopen(str(tmp_path))
    again.reading((1_500_000_000, 1, 2, 3, 4, 5))
    again.close()
    [reading] = follower.turn()
    assert isinstance(reading, ResourceReading)
    assert (reading.cpu_seconds, reading.memory_bytes, reading.processes) == (1.5, 1, 5)
    assert journal.find_started(str(tmp_path)) == (12, 34)
    follower.close()


def test_bytes_that_nobody_lived_to_mark_are_seen_at_the_end(tmp_path: Path) -> None:
    book = journal.Journal.create(str(tmp_path))
    (tmp_path / "stdout").write_bytes(b"marked, unmarked")
    book.mark(0, 7)
    book.close()
    follower = following.Follower(tmp_path, "benchmark")
    [marked] = follower.turn()
    unmarked, ended = follower.rest(an_end())
    assert isinstance(marked, OutputChunk)
    assert isinstance(unmarked, OutputChunk)
    assert (marked.data, unmarked.data) == (b"marked,", b" unmarked")
    assert ended == dataclasses.replace(an_end(), at=marked.at)  # never before what it ends
    follower.close()


def test_a_file_shorter_than_its_marks_does_not_hang(tmp_path: Path) -> None:
    book = journal.Journal.create(str(tmp_path))
    (tmp_path / "stdout").write_bytes(b"short")
    book.mark(0, 100)
    book.close()
    follower = following.Follower(tmp_path, "benchmark")
    assert [o.data for o in follower.turn() if isinstance(o, OutputChunk)] == [b"short"]
    follower.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    place = Path(files.live(str(tmp_path)))
    place.mkdir(exist_ok=True)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def channel(tmp_path: Path, live: Path) -> channels.Channel:
    os.mkfifo(live / "stdout.fifo")
    return channels.Channel(str(tmp_path), 0)


@pytest.mark.parametrize("can_splice", [True, False])
def test_what_is_written_into_a_channel_is_kept_in_its_file(
    channel: channels.Channel, tmp_path: Path, live: Path, can_splice: bool
) -> None:
    """Also on file systems that cannot splice."""
    channel._can_splice = can_splice
    writer = os.open(live / "stdout.fifo", os.O_WRONLY)
    for text in (b"one ", b"two ", b"three"):
        os.write(writer, text)
        assert channel.has_data()
        assert channel.keep(100) == len(text)
    assert not channel.has_data()
    assert channel.keep(100) == 0
    assert (tmp_path / "stdout").read_bytes() == b"one two three"
    os.close(writer)
    channel.close()


def test_a_channel_goes_on_where_a_dead_one_stopped(
    channel: channels.Channel, tmp_path: Path
) -> None:
    (tmp_path / "stdout").write_bytes(b"before ")
    channel.resume()
    os.write(channel.fifo, b"after")
    channel.keep(100)
    assert (tmp_path / "stdout").read_bytes() == b"before after"
    channel.close()


def test_a_lock_is_held_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    lock = files.take_lock(str(tmp_path))
    assert lock is not None
    assert files.take_lock(str(tmp_path)) is None
    os.close(lock)
    again = files.take_lock(str(tmp_path))
    assert again is not None
    os.close(again)
    assert files.take_lock(str(tmp_path / "nowhere")) is None


def test_children_of_threads_belong_to_the_tree() -> None:
    """The kernel lists a child with the thread that started it."""
    found: list[bool] = []

    def start() -> None:
        with subprocess.Popen(["sleep", "60"]) as child:
            found.append(child.pid in tree.descendants(os.getpid()))
            child.kill()

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert found == [True]


def test_a_kernel_without_lists_of_children_is_asked_for_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree, "_kernel_lists_children", lambda: False)
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        below = list(tree.descendants(child.pid))
        assert child.pid in tree.children(os.getpid())
        assert len(below) == 1
        tree.send(signal.SIGKILL, [child.pid, *below])


def test_a_session_ends_with_its_shim(tmp_path: Path) -> None:
    """Its number may be given to strangers afterwards, whom recovery must not touch."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
        book = journal.Journal.create(str(tmp_path))
        book.started(child.pid, tree.start_ticks(child.pid))
        book.close()
        session = recovery.session_of(str(tmp_path))
        assert session is not None
        assert session.has(child.pid)
        assert not session.has(os.getpid())
        os.utime(tmp_path / files.JOURNAL, (1e9, 1e9))  # the shim died long before this sleep
        stranger = recovery.session_of(str(tmp_path))
        assert stranger is not None
        assert not stranger.has(child.pid)
        child.kill()


def test_an_ended_process_that_waits_to_be_reaped_is_not_running() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not tree.is_running(child.pid)
    assert tree.stat(child.pid) is None


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another folder in the place of the machine's memory."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(files, "MEMORY", str(folder))
    files.memory.cache_clear()
    yield folder
    files.memory.cache_clear()


def test_live_names_are_in_memory_in_a_folder_only_we_may_enter(memory: Path) -> None:
    place = Path(files.live("/home/somebody/runs/run-1"))
    assert place.parent.parent == memory
    assert place.parent.stat().st_mode & 0o077 == 0
    assert place != Path(files.live("/home/another/runs/run-1"))


@pytest.mark.parametrize("obstacle", ["a file", "a link", "open to others"])
def test_a_folder_in_memory_that_is_not_safely_ours_is_not_used(
    memory: Path, obstacle: str
) -> None:
    ours = memory / f"anubis-{os.getuid()}"
    if obstacle == "a file":
        ours.write_text("")
    elif obstacle == "a link":
        (memory / "elsewhere").mkdir()
        ours.symlink_to(memory / "elsewhere")
    else:
        ours.mkdir()
        ours.chmod(0o777)
    assert files.live("/runs/run-1") == "/runs/run-1"


def test_a_machine_without_such_a_folder_works_too(memory: Path) -> None:
    memory.rmdir()
    assert files.live("/runs/run-1") == "/runs/run-1"


def test_what_removed_runs_left_in_memory_is_forgotten(memory: Path, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    (root / "kept").mkdir(parents=True)
    kept, gone = (Path(files.live(str(root / name))) for name in ("kept", "gone"))
    other = Path(files.live(str(tmp_path / "other" / "gone")))
    for place in (kept, gone, other):
        place.mkdir()
    removing.forget_strays(root)
    assert (kept.exists(), gone.exists(), other.exists()) == (True, False, True)
