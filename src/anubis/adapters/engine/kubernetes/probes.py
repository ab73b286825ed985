"""How a unit answers its probes: its recorder asks, and we read the answers in the journal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence

from anubis.adapters.engine.kubernetes.attending import Attendant
from anubis.adapters.engine.kubernetes.mirroring import Reader
from anubis.adapters.engine.kubernetes.places import Place, now
from anubis.adapters.engine.kubernetes.recording import Frame, Kind
from anubis.adapters.engine.process.following import moment
from anubis.domain.observation import Condition, UnitReady, UnitSilent, UnitUnready
from anubis.domain.plan import Unit

LOOK_SECONDS = 5.0


async def conditions(
    place: Place, unit: Unit, attendant: Attendant
) -> AsyncGenerator[Condition, None]:
    """See ``Engine.probe``. The latest answer first; then each that differs from the one before."""
    reader, last = Reader(place.journal), None
    try:
        while True:
            rung = attendant.bell.next()
            for condition in _news(place, unit, reader, attendant):
                if last is None or type(condition) is not type(last):
                    last = condition
                    yield condition
                if isinstance(condition, UnitSilent):
                    return
            if isinstance(last, UnitReady) and place.ended() is not None:
                last = UnitUnready(unit=unit.name, at=now(), message="it has ended")
                yield last
            await _wait(rung)
    finally:
        reader.close()


def _news(place: Place, unit: Unit, reader: Reader, attendant: Attendant) -> Sequence[Condition]:
    """What was answered since the last look: of what belongs together, the latest."""
    found: list[Condition] = []
    if unit.readiness is None and _has_begun(place):
        found.append(UnitReady(unit=unit.name, at=now()))
    for frames in reader.turn(attendant.mirror.size):
        for frame in frames:
            found += _condition(frame, unit)
    return found[-1:]


def _has_begun(place: Place) -> bool:
    story = place.story()
    return bool(story) and not story[-1].waiting


def _condition(frame: Frame, unit: Unit) -> Iterator[Condition]:
    if frame.kind != Kind.CONDITION:
        return
    told = frame.json()
    at, message = moment(frame.at_ns), str(told.get("message", ""))
    match told.get("condition"):
        case "ready":
            yield UnitReady(unit=unit.name, at=at)
        case "unready":
            yield UnitUnready(unit=unit.name, at=at, message=message)
        case "silent":
            yield UnitSilent(unit=unit.name, at=at, message=message)


async def _wait(rung: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            await rung.wait()
