"""What the engine keeps of a unit on this machine: who it is at the cluster, and what was seen.

spec.json    which objects it needs there, and its limits; written before anything is asked for
created      that the cluster has taken its workload; from now on, what is missing was deleted
pod.json     which pod the journal is of; an operator may make another one with its name
story        what it waited for, and when it began: one JSON object a line
journal      the copy of what its recorder wrote (see ``recording``)
stop.json    the request to stop
status.json  how it ended; the last thing written, durably

Everything that an observer is told comes from here, so that all of them are told the same, also
after a restart and when the cluster has forgotten it all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anubis.adapters.engine.kubernetes.kinds import Kind
from anubis.adapters.engine.process import following
from anubis.adapters.engine.process.guardian import files
from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import Limits

CREATED, STORY, POD = "created", "story", "pod.json"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """An object at the cluster."""

    kind: Kind
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """The pod whose journal is copied."""

    name: str = ""
    uid: str = ""  #: empty: there is none yet


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """What must be known of a unit while its plan is not at hand."""

    unit: str
    workload: Named  #: what makes its pod
    objects: tuple[Named, ...]  #: all that was applied for it, the workload last
    limits: Limits
    asked_at: datetime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StopRequest:
    """Why a unit shall end, and by when."""

    cause: EndCause
    grace: timedelta
    asked_at: datetime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """One line of the story: it waits for something, or (without words) it began."""

    at: datetime
    waiting: str = ""
    where: str = ""  #: the node on which it began


class Place:
    """The directory of one unit."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def journal(self) -> Path:
        """The copy of the recorder's journal."""
        return self.directory / files.JOURNAL

    @property
    def is_used(self) -> bool:
        """Whether somebody asked for this unit."""
        return (self.directory / files.SPEC).exists()

    @property
    def created_at(self) -> datetime | None:
        """When the cluster took its workload; None if it has not."""
        try:
            return datetime.fromtimestamp((self.directory / CREATED).stat().st_mtime, UTC)
        except FileNotFoundError:
            return None

    def write_spec(self, spec: Spec) -> None:
        """Say what is going to be asked for. Raises OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = {
            "unit": spec.unit,
            "objects": [_named(one) for one in spec.objects],
            "workload": _named(spec.workload),
            "limits": _plain(spec.limits),
            "asked_at": spec.asked_at.isoformat(),
        }
        self._write(files.SPEC, content)

    def spec(self) -> Spec | None:
        """What was asked for; None if nothing was."""
        found = self._read(files.SPEC)
        if found is None:
            return None
        return Spec(
            unit=found["unit"],
            workload=_of(found["workload"]),
            objects=tuple(_of(one) for one in found["objects"]),
            limits=_limits(found["limits"]),
            asked_at=datetime.fromisoformat(found["asked_at"]),
        )

    def mark_created(self) -> None:
        """From now on the workload is the cluster's. Raises OSError."""
        (self.directory / CREATED).touch(mode=0o600)

    def follow(self, name: str, uid: str) -> Followed:
        """Say which pod's journal is going to be copied. Raises OSError."""
        self._write(POD, {"name": name, "uid": uid})
        return Followed(name=name, uid=uid)

    def followed(self) -> Followed:
        """Whose journal is copied."""
        return Followed(**(self._read(POD) or {}))

    def tell(self, chapter: Chapter) -> None:
        """Add to the story. Raises OSError."""
        told = {"at": chapter.at.isoformat(), "waiting": chapter.waiting, "where": chapter.where}
        line = json.dumps(told)
        with (self.directory / STORY).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def story(self) -> Sequence[Chapter]:
        """All that was told so far."""
        try:
            lines = (self.directory / STORY).read_text("utf-8").split("\n")
        except FileNotFoundError:
            return ()
        return tuple(_chapters(lines))

    def request_stop(self, request: StopRequest) -> None:
        """Of several requests, the first decides the cause and the shortest the patience."""
        if (known := self.stop_request()) is not None:
            until = min(known.asked_at + known.grace, request.asked_at + request.grace)
            grace = max(timedelta(), until - known.asked_at)
            request = dataclasses.replace(known, grace=grace)
        self._write(
            files.STOP,
            {
                "cause": request.cause.value,
                "grace": request.grace.total_seconds(),
                "asked_at": request.asked_at.isoformat(),
            },
        )

    def stop_request(self) -> StopRequest | None:
        """Why it shall end, if it shall."""
        found = self._read(files.STOP)
        if found is None:
            return None
        return StopRequest(
            cause=EndCause(found["cause"]),
            grace=timedelta(seconds=found["grace"]),
            asked_at=datetime.fromisoformat(found["asked_at"]),
        )

    def write_ended(self, ended: UnitEnded) -> None:
        """Say how it ended, so that it survives a power cut. The first who says it is right."""
        if self.ended() is not None:
            return
        content = {
            **{field.name: getattr(ended, field.name) for field in dataclasses.fields(ended)},
            "cause": ended.cause.value,
            "ended_ns": round(ended.at.timestamp() * 1e6) * 1000,
        }
        del content["at"]
        text = json.dumps(content).encode()
        files.write_durably(str(self.directory), files.STATUS, text, sync=True)

    def ended(self) -> UnitEnded | None:
        """How it ended; None while it goes on."""
        return following.read_ended(self.directory)

    def _write(self, name: str, content: Mapping[str, object]) -> None:
        text = json.dumps(content).encode()
        files.write_durably(str(self.directory), name, text, sync=False)

    def _read(self, name: str) -> dict[str, Any] | None:
        return files.read_json(str(self.directory), name)


def now() -> datetime:
    """The time at which something is kept."""
    return datetime.now(UTC)


def _named(one: Named) -> list[str]:
    kind = one.kind
    return [kind.group_version, kind.kind, kind.plural, one.name]


def _of(words: Sequence[str]) -> Named:
    group_version, kind, plural, name = words
    return Named(kind=Kind(group_version=group_version, kind=kind, plural=plural), name=name)


def _plain(limits: Limits) -> dict[str, object]:
    """Limits in seconds and numbers."""
    pairs = ((field.name, getattr(limits, field.name)) for field in dataclasses.fields(limits))
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in pairs
    }


def _limits(found: Mapping[str, Any]) -> Limits:
    """The other way round; what an older version did not write is as usual."""
    usual = Limits()
    read = {
        name: timedelta(seconds=value) if isinstance(getattr(usual, name), timedelta) else value
        for name, value in found.items()
    }
    return Limits(**read)  # type: ignore[arg-type] # our own file


def _chapters(lines: Sequence[str]) -> Iterator[Chapter]:
    for line in lines:
        with contextlib.suppress(ValueError, KeyError):  # half a line, of who was killed in it
            found = json.loads(line)
            at = datetime.fromisoformat(found["at"])
            yield Chapter(at=at, waiting=found["waiting"], where=found["where"])
