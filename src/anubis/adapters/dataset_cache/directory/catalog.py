"""What is here: references, objects and pins, and the rules by which they go.

All changes happen under the lock ``locks/index``, held for milliseconds; nothing is deleted under
it, only moved away. A hit holds it shared, so that what it finds cannot be evicted before its pin
is written. Everything here blocks, and belongs in a thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from anubis.adapters.dataset_cache.directory import linux, locking, records, trees
from anubis.adapters.dataset_cache.directory.layout import Layout
from anubis.adapters.dataset_cache.directory.records import Known, Record
from anubis.adapters.dataset_cache.directory.room import Room
from anubis.domain.dataset import Dataset, DatasetKey
from anubis.domain.errors import DatasetNotFound, NotPossible
from anubis.domain.run import RunId

_LARGEST_PIN = 4096
"""Bytes; a pin holds a name."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Pin:
    run: RunId
    key: DatasetKey
    object: str
    path: Path


class Catalog:
    """The references, objects and pins of one folder."""

    def __init__(self, place: Layout, room: Room) -> None:
        self._place = place
        self._room = room

    def find(self, key: DatasetKey) -> Known | None:
        """The record of a reference whose content is there and untouched."""
        known = records.read(self._place.reference(key))
        sound = known is not None and records.is_sound(self._place.objects, known.record)
        return known if sound else None

    def use(self, key: DatasetKey, run: RunId | None, now: datetime) -> Dataset | None:
        """A hit: pinned for the run and marked as used. None if it is not here, or not sound."""
        with self._index(shared=True):
            known = self.find(key)
            if known is None:
                return None
            records.use(self._place.reference(key), now)
            if run is not None:
                self._pin(run, key, known.record["object"])
        used = dataclasses.replace(known, used_at=now)
        return used.dataset(self._place.objects, self._pinned_by(key))

    def publish(self, key: DatasetKey, made: Path, record: Record, run: RunId | None) -> None:
        """Take a whole, synced object out of the partial area and make it the reference's."""
        now = datetime.fromisoformat(record["fetched"])
        with self._index(shared=False):
            target = self._place.objects / record["object"]
            if not self._has_sound(record):
                self._set_aside(record["object"])
                made.rename(target)
                linux.sync(self._place.objects)
            record = self._named(target, made, record)
            if run is not None:
                self._pin(run, key, record["object"])
            records.write(self._place.reference(key), record, now)
            self._drop_rubbish()
        trees.clear(self._place.removed)

    def all(self) -> Sequence[Dataset]:
        """All datasets, last used first."""
        pins = self._pins()
        return [
            known.dataset(self._place.objects, _runs(pins, known.key)) for known in self._known()
        ]

    def unpin(self, run: RunId) -> None:
        """Let go of what a run used."""
        folder = self._place.pins_of(run)
        if not folder.is_dir():
            return
        with self._index(shared=False):
            trees.move_away(folder, self._place.removed)
            self._drop_rubbish()
        trees.clear(self._place.removed)

    def unpin_silent(self, before: datetime) -> None:
        """Let go for runs whose pins nobody has touched since then."""
        for folder in list(self._place.pins.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # somebody else does the same
                if folder.stat().st_mtime < before.timestamp():
                    self.unpin(self._place.run_of(folder))

    def pinned(self) -> Sequence[RunId]:
        """Runs that use something."""
        return sorted({pin.run for pin in self._pins()})

    def evict(self, key: DatasetKey) -> int:
        """Forget a reference, and its object if no other has it; the bytes that became free."""
        with self._index(shared=False):
            path = self._place.reference(key)
            known = records.read(path)
            if known is None and not path.exists():
                raise DatasetNotFound(f"no dataset of the cache has the key {key}")
            if runs := self._pinned_by(key):
                raise NotPossible(f"dataset {key} is used by: {', '.join(runs)}")
            path.unlink()
            gone = self._drop_rubbish()
        trees.clear(self._place.removed)
        return known.record["size"] if known and known.record["object"] in gone else 0

    def shrink(self, most_bytes: int) -> Sequence[Dataset]:
        """Evict what is not pinned, least recently used first, until the rest fits."""
        with self._index(shared=False):
            evicted = self._shrink(most_bytes)
            self._drop_rubbish()
        trees.clear(self._place.removed)
        return evicted

    def make_room(self, needed: int) -> None:
        """Evict as little as makes ``needed`` bytes fit.

        Raises StorageFull, having evicted nothing, if even all of it would not suffice.
        """
        trees.clear(self._place.removed)
        with self._index(shared=False):
            self._drop_rubbish()
            lacking = self._lacking(needed)
            if lacking > 0 and self._drop_abandoned():
                trees.clear(self._place.removed)
                lacking = self._lacking(needed)
            if lacking == 0:
                return
            evictable = self._used() - self._used(pinned_only=True)
            if evictable < lacking:
                raise self._room.full(needed, evictable=evictable)
            self._shrink(self._used() - lacking)
            self._drop_rubbish()
        trees.clear(self._place.removed)

    def damage(self, key: DatasetKey) -> None:
        """Drop a reference whose content is not what was fetched, with all that share it."""
        with self._index(shared=False):
            known = records.read(self._place.reference(key))
            if known is not None:
                self._set_aside(known.record["object"])
                self._drop_rubbish()
        trees.clear(self._place.removed)

    def _set_aside(self, name: str) -> None:
        """Free the name of an object that is damaged. Runs that use it keep what they have."""
        old = self._place.objects / name
        if not old.exists():
            return
        new = f"{name}.damaged-{secrets.token_hex(4)}"
        for pin in self._pins():
            if pin.object == name:
                _write_pin(pin.path, new)
        for known in self._known():
            if known.record["object"] == name:
                self._place.reference(known.key).unlink(missing_ok=True)
        old.rename(self._place.objects / new)

    def _has_sound(self, record: Record) -> bool:
        """Whether the same bytes are here already, from another reference."""
        same = [known.record for known in self._known() if _object(known) == record["object"]]
        return any(records.is_sound(self._place.objects, other) for other in same)

    def _named(self, target: Path, made: Path, record: Record) -> Record:
        """The record, with the content under the name that it asks for."""
        path = target / record["name"]
        if not path.exists():  # the same bytes under another name
            other = next(target.iterdir())
            path.hardlink_to(other)
        trees.move_away(made, self._place.removed)
        return {**record, "stamp": records.stamp(path)}

    def _pin(self, run: RunId, key: DatasetKey, name: str) -> None:
        folder = self._place.pins_of(run)
        folder.mkdir(mode=0o700, exist_ok=True)
        _write_pin(folder / key, name)

    def _pinned_by(self, key: DatasetKey) -> tuple[str, ...]:
        return _runs(self._pins(), key)

    def _pins(self) -> Sequence[_Pin]:
        found = []
        for folder in self._place.pins.iterdir():
            # Not there: a run that ended while we looked. No folder: nothing of ours.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                run = self._place.run_of(folder)
                found += [
                    _Pin(run=run, key=DatasetKey(path.name), object=name, path=path)
                    for path in folder.iterdir()
                    if (name := _pinned(path))
                ]
        return found

    def _known(self) -> Sequence[Known]:
        """All records, last used first."""
        paths = self._place.references.glob("*.json")
        found = [known for known in map(records.read, paths) if known is not None]
        return sorted(found, key=lambda known: known.used_at, reverse=True)

    def _used(self, *, pinned_only: bool = False) -> int:
        """Bytes of all objects that references name, or of those that are pinned."""
        pins = {pin.key for pin in self._pins()} if pinned_only else set()
        return sum(_sizes(k for k in self._known() if not pinned_only or k.key in pins).values())

    def _lacking(self, needed: int) -> int:
        unfinished = sum(trees.taken(path) for path in self._place.partial.iterdir())
        return self._room.lacking(needed, self._used() + unfinished)

    def _drop_abandoned(self) -> bool:
        """Move transfers away that nobody carries on; whether there were any."""
        dropped = False
        for partial in self._place.partial.iterdir():
            path = self._place.locks / partial.name
            lock = locking.try_lock(path)
            if lock is not None:
                trees.move_away(partial, self._place.removed)
                locking.let_go(path, lock)
                dropped = True
        return dropped

    def _shrink(self, most_bytes: int) -> Sequence[Dataset]:
        pins = {pin.key for pin in self._pins()}
        kept = list(self._known())
        evicted = []
        for known in reversed(list(kept)):
            if sum(_sizes(kept).values()) <= most_bytes:
                break
            if known.key not in pins:
                self._place.reference(known.key).unlink(missing_ok=True)
                kept.remove(known)
                evicted.append(known.dataset(self._place.objects, ()))
        return evicted

    def _drop_rubbish(self) -> set[str]:
        """Move objects away that no reference and no pin names; the names of those."""
        wanted = {known.record["object"] for known in self._known()}
        wanted |= {pin.object for pin in self._pins()}
        gone = {path.name for path in self._place.objects.iterdir()} - wanted
        for name in gone:
            trees.move_away(self._place.objects / name, self._place.removed)
        return gone

    def _index(self, *, shared: bool) -> contextlib.AbstractContextManager[None]:
        return locking.held(self._place.locks / "index", shared=shared)


def _write_pin(path: Path, name: str) -> None:
    """Never through a link, nor into a pipe, that somebody left there; see ``_pinned``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(name)


def _pinned(path: Path) -> str:
    """The object that a pin holds. Empty if it is none of ours: on nodes of a cluster a program may
    write beside its own pins, and must not keep all others waiting for a pipe.
    """
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_PIN:
        return ""
    return path.read_text("utf-8", "replace")


def _runs(pins: Sequence[_Pin], key: DatasetKey) -> tuple[str, ...]:
    return tuple(sorted(pin.run for pin in pins if pin.key == key))


def _object(known: Known) -> str:
    return known.record["object"]


def _sizes(found: Iterator[Known] | Sequence[Known]) -> Mapping[str, int]:
    """Bytes by object: what several references share counts once."""
    return {known.record["object"]: known.record["size"] for known in found}
