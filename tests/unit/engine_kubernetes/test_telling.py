"""Every observer of a unit is told the same, in the order of time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.places import Chapter, Place
from anubis.adapters.engine.kubernetes.recording import Kind
from anubis.adapters.engine.kubernetes.telling import Teller
from anubis.domain.observation import (
    EmittedChunk,
    EndCause,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitStarted,
    UnitWaiting,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NS = round(NOON.timestamp()) * 10**9
READING = recording.Reading(1.5, 100, 2, 3, 4, 5)
ENDED = UnitEnded(unit="benchmark", at=NOON, cause=EndCause.EXITED, exit_code=0)


def a_place(tmp_path: Path, *frames: bytes) -> Place:
    place = Place(tmp_path)
    place.journal.write_bytes(b"".join(frames))
    return place


def size(place: Place) -> int:
    return place.journal.stat().st_size


def test_output_waits_until_the_cluster_says_that_the_program_runs(tmp_path: Path) -> None:
    place = a_place(tmp_path, recording.packed_output(Kind.STDOUT, 4, b"one\n", NS))
    teller = Teller(place, "benchmark")
    place.tell(Chapter(at=NOON, waiting="no room"))
    assert list(teller.turn(size(place))) == [
        UnitWaiting(unit="benchmark", at=NOON, message="no room")
    ]
    place.tell(Chapter(at=NOON, where="node1"))
    assert list(teller.turn(size(place))) == [
        UnitStarted(unit="benchmark", at=NOON, where="node1"),
        OutputChunk(unit="benchmark", at=NOON, stream=Stream.STDOUT, data=b"one\n"),
    ]
    assert list(teller.rest(size(place), ENDED)) == [ENDED]


def test_all_kinds_of_frames_become_what_other_engines_tell(tmp_path: Path) -> None:
    place = a_place(
        tmp_path,
        recording.packed_output(Kind.STDERR, 4, b"oh no\n", NS),
        recording.packed(Kind.EMITTED, b"{}\n", NS),
        recording.packed_json(Kind.READING, READING, NS),
        recording.packed_json(Kind.NOTE, {"message": "x"}, NS),
        recording.packed(99, b"from a later version", NS),
    )
    place.tell(Chapter(at=NOON))
    started, *seen = list(Teller(place, "benchmark").rest(size(place), ENDED))
    expected: list[Observation] = [
        OutputChunk(unit="benchmark", at=NOON, stream=Stream.STDERR, data=b"oh no\n"),
        EmittedChunk(unit="benchmark", at=NOON, data=b"{}\n"),
        ResourceReading(unit="benchmark", at=NOON, **READING._asdict()),
        ENDED,
    ]
    assert isinstance(started, UnitStarted)
    assert seen == expected


def test_times_never_run_backwards_though_clocks_of_nodes_do(tmp_path: Path) -> None:
    place = a_place(
        tmp_path,
        recording.packed_output(Kind.STDOUT, 4, b"a", NS + 10**9),
        recording.packed_output(Kind.STDOUT, 8, b"b", NS - 10**12),
    )
    place.tell(Chapter(at=NOON))
    seen = list(Teller(place, "benchmark").rest(size(place), ENDED))
    assert [one.at for one in seen] == sorted(one.at for one in seen)


def test_a_program_that_wrote_something_did_begin(tmp_path: Path) -> None:
    place = a_place(tmp_path, recording.packed_output(Kind.STDOUT, 4, b"a", NS))
    seen = list(Teller(place, "benchmark").rest(size(place), ENDED))
    assert isinstance(seen[0], UnitStarted)
