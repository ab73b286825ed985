"""The journal reads the same however its bytes arrive, and whoever was killed while writing it."""

from __future__ import annotations

import errno
import itertools
import os
import pathlib
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.recording import Damaged, Frame, Journal, Kind, frames

FRAMES = st.lists(
    st.builds(
        Frame,
        kind=st.integers(1, 255),
        at_ns=st.integers(-(2**63), 2**63 - 1),
        payload=st.binary(max_size=100),
    ),
    max_size=20,
)


def packed(found: list[Frame]) -> bytes:
    return b"".join(recording.packed(one.kind, one.payload, one.at_ns) for one in found)


@given(FRAMES, st.lists(st.integers(0, 3000), max_size=10))
def test_any_cut_of_the_bytes_gives_the_same_frames(wrote: list[Frame], cuts: list[int]) -> None:
    content = packed(wrote)
    places = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    found: list[Frame] = []
    rest = b""
    for begin, end in itertools.pairwise(places):
        more, rest = frames(rest + content[begin:end])
        found += more
    assert found == wrote
    assert rest == b""


@given(FRAMES, st.integers(1, 112))
def test_a_frame_that_was_not_finished_is_cut_off_before_the_next_is_written(
    wrote: list[Frame], missing: int
) -> None:
    last = recording.packed(Kind.EMITTED, b"x" * 100, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "journal")
        path.write_bytes(packed(wrote) + last[: len(last) - missing])
        assert list(recording.recover(str(path))) == wrote
        journal = Journal(str(path))
        journal.append(last)
        journal.close()
        assert path.read_bytes() == packed(wrote) + last


def test_a_journal_that_is_not_there_has_no_frames(tmp_path: pathlib.Path) -> None:
    assert list(recording.recover(str(tmp_path / "journal"))) == []


def test_a_journal_larger_than_one_read_is_recovered(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "journal"
    wrote = [Frame(Kind.EMITTED, n, os.urandom(70_000)) for n in range(40)]
    path.write_bytes(packed(wrote))
    assert list(recording.recover(str(path))) == wrote


def test_a_length_that_cannot_be_is_damage_and_not_waited_for() -> None:
    content = recording.HEADER.pack(Kind.STDOUT, recording.LARGEST_PAYLOAD + 1, 0)
    with pytest.raises(Damaged):
        frames(content)


def test_what_a_full_disk_did_not_take_is_written_when_there_is_room(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(str(tmp_path / "journal"))
    content = packed([Frame(Kind.EMITTED, 1, b"emitted before the disk was full")])
    write, room = os.write, [7]

    def full(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: room.pop()])

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            journal.append(content)
    journal.append(content)
    journal.close()
    assert (tmp_path / "journal").read_bytes() == content + content


def test_output_tells_its_bytes_and_its_place_in_the_log() -> None:
    [frame], _ = frames(recording.packed_output(Kind.STDERR, 123, b"\x00line", 5))
    assert (frame.position, frame.data, frame.at_ns) == (123, b"\x00line", 5)


def test_readings_are_objects_with_their_fields() -> None:
    reading = recording.Reading(1.5, 2, 3, 4, 5, 6)
    [frame], _ = frames(recording.packed_json(Kind.READING, reading))
    assert recording.Reading(**frame.json()) == reading  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"\xff"])
def test_json_that_is_none_is_damage(payload: bytes) -> None:
    with pytest.raises(Damaged):
        Frame(Kind.NOTE, 0, payload).json()


@pytest.mark.parametrize("can_splice", [True, False])
def test_bytes_of_a_pipe_become_one_frame(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, can_splice: bool
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    if not can_splice:
        monkeypatch.setattr(os, "splice", refuse)
    reader, writer = os.pipe()
    os.write(writer, b'{"loss": 1}\n')
    journal = Journal(str(tmp_path / "journal"))
    journal.append_from(reader, Kind.EMITTED, 12)
    journal.append(recording.packed(Kind.NOTE, b"{}", 1))
    for descriptor in (reader, writer):
        os.close(descriptor)
    journal.close()
    found = list(recording.recover(str(tmp_path / "journal")))
    assert [(frame.kind, frame.data) for frame in found] == [
        (Kind.EMITTED, b'{"loss": 1}\n'),
        (Kind.NOTE, b"{}"),
    ]


@pytest.mark.parametrize("arrived", [0, 1, 50, 99])
def test_what_left_the_pipe_before_a_kill_stays_in_the_journal(
    tmp_path: pathlib.Path, arrived: int
) -> None:
    path = tmp_path / "journal"
    before = recording.packed(Kind.NOTE, b"{}", 1)
    frame = recording.packed(Kind.EMITTED, bytes(range(100)), 2)
    path.write_bytes(before + frame[: recording.HEADER.size + arrived])
    found = list(recording.recover(str(path), mends=True))
    assert b"".join(one.data for one in found[1:]) == bytes(range(arrived))
    assert list(recording.recover(str(path))) == found, "and it reads the same from then on"
