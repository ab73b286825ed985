"""Data that programs read: what must be fetched, and where each unit finds it.

A unit with files of its own sees data at the path that the descriptor names. A process of the
machine cannot: there, the path in its command and its variables is replaced (see ``paths``).
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from anubis.domain import blanks, dataset
from anubis.domain.descriptor import Source
from anubis.domain.errors import UserError
from anubis.domain.plan import Fetch, Mount
from anubis.stages.planning.place import FILES_FOLDER, SCRIPTS_FOLDER

VARIABLE: Final = "ANUBIS_DATA_"
"""Followed by the id of a source in capitals, or by its number: tells where the data is."""

_HOME: Final = "/root"
"""What ``~`` is in a container: nearly all run as root."""

_EMIT_FOLDER: Final = "/tmp/benchmark-ai"  # noqa: S108 (inside containers, as in the original)
_RESERVED: Final = ("/proc", "/sys", FILES_FOLDER, SCRIPTS_FOLDER, _EMIT_FOLDER)
"""What is there must stay visible: data in its place, or all around it, would hide it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A source, and where programs find it."""

    field: str  #: ``data.sources[0]``
    fetch: int  #: its number in ``Plan.fetches``
    target: str  #: its path in a unit with files of its own
    spellings: tuple[str, ...]  #: how commands may write that path
    names: tuple[str, ...]  #: of the variables that tell its path


def fetch_of(source: Source, field: str, directory: str) -> Fetch:
    """What must be here. Paths without a scheme start where the descriptor is."""
    try:
        checksum = str(dataset.checksum(source.md5) or "")
    except UserError:  # told by ``obstacles``
        checksum = source.md5
    uri = source.src.strip()
    if _is_relative(uri) and directory:
        uri = posixpath.normpath(posixpath.join(directory, uri))
    return Fetch(uri=uri, checksum=checksum, unpack=source.unpack, field=field)


def _is_relative(uri: str) -> bool:
    return not uri.startswith("/") and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri)


def joined(fetches: Sequence[Fetch]) -> tuple[Fetch, ...]:
    """Each different content once."""
    first: dict[tuple[str, str, bool], Fetch] = {}
    for fetch in fetches:
        first.setdefault(_content(fetch), fetch)
    return tuple(first.values())


def _content(fetch: Fetch) -> tuple[str, str, bool]:
    return fetch.uri, fetch.checksum, fetch.unpack


def placed(
    sources: Sequence[Source], asked: Sequence[Fetch], fetches: Sequence[Fetch]
) -> tuple[Placed, ...]:
    """Where each source is found. ``asked`` are theirs, ``fetches`` those of the whole run."""
    numbers = {_content(fetch): number for number, fetch in enumerate(fetches)}
    names = _names(sources)
    return tuple(
        Placed(
            field=fetch.field,
            fetch=numbers[_content(fetch)],
            target=_target(source.path),
            spellings=_spellings(source.path),
            names=names[index],
        )
        for index, (source, fetch) in enumerate(zip(sources, asked, strict=True))
    )


def _names(sources: Sequence[Source]) -> list[tuple[str, ...]]:
    """The variables of each: by its number, and by its id if no other has that."""
    numbers = [f"{VARIABLE}{index}" for index in range(len(sources))]
    taken = set(numbers)
    names: list[tuple[str, ...]] = []
    for number, source in zip(numbers, sources, strict=True):
        named = VARIABLE + re.sub(r"[^A-Z0-9]", "_", source.id.upper())
        is_new = bool(source.id) and named not in taken
        taken.add(named)
        names.append((number, named) if is_new else (number,))
    return names


def _target(path: str) -> str:
    path = path.strip()
    if path == "~" or path.startswith("~/"):
        path = _HOME + path[1:]
    return "/" + "/".join(part for part in path.split("/") if part not in {"", "."})


def _spellings(path: str) -> tuple[str, ...]:
    """As it was written, and in full. A name without slashes could be any word, and is not one."""
    written = path.strip().rstrip("/")
    return tuple(dict.fromkeys((written, _target(path)) if "/" in written else (_target(path),)))


def real_path(source: Placed, *, isolates: bool) -> str:
    """Where a unit finds the data."""
    return source.target if isolates else blanks.data(source.fetch)


def variables(found: Sequence[Placed], *, isolates: bool) -> Mapping[str, str]:
    """What a unit is told about its data."""
    return {name: real_path(source, isolates=isolates) for source in found for name in source.names}


def mounts(found: Sequence[Placed]) -> tuple[Mount, ...]:
    """What a unit with files of its own sees, each path once."""
    every = {
        source.target: Mount(source=blanks.data(source.fetch), target=source.target)
        for source in found
    }
    return tuple(every.values())


def real_paths(found: Sequence[Placed], *, isolates: bool) -> Mapping[str, str]:
    """Every way to write the path of a source, and where it really is."""
    return {
        spelling: real_path(source, isolates=isolates)
        for source in found
        for spelling in source.spellings
    }


def obstacles(
    sources: Sequence[Source], asked: Sequence[Fetch], found: Sequence[Placed]
) -> Iterator[str]:
    """What is wrong with the sources of a unit, each with its field."""
    for source, fetch in zip(sources, asked, strict=True):
        yield from _obstacles_of_content(source, fetch)
        yield from _obstacles_of_path(source.path, f"{fetch.field}.path")
    yield from _clashes(found)


def _obstacles_of_content(source: Source, fetch: Fetch) -> Iterator[str]:
    try:
        dataset.refuse_secrets(fetch.uri)
    except UserError as error:
        yield f"{fetch.field}.src: {error}"
    if _is_relative(fetch.uri):
        yield (
            f"{fetch.field}.src: found the relative path {fetch.uri!r}, expected a URL or an "
            "absolute path: where this descriptor lies is not known"
        )
    try:
        dataset.checksum(source.md5)
    except UserError as error:
        yield f"{fetch.field}.md5: {error}"


def _obstacles_of_path(path: str, field: str) -> Iterator[str]:
    if ".." in path.split("/"):
        yield f"{field}: found {path!r}, expected a path without '..'"
    target = _target(path)
    if target == "/" or any(
        _is_inside(target, reserved) or _is_inside(reserved, target) for reserved in _RESERVED
    ):
        yield (
            f"{field}: found {path!r}, expected a path that is not /, and not inside or around "
            f"{', '.join(_RESERVED)}"
        )


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _clashes(found: Sequence[Placed]) -> Iterator[str]:
    first: dict[str, Placed] = {}
    for one in found:
        other = first.setdefault(one.target, one)
        if one.fetch != other.fetch:
            yield (
                f"{one.field}.path: found {one.target!r}, where {other.field} is already; "
                "expected a path of its own"
            )
    for one in first.values():
        for above in _above(one.target):
            if above in first:
                yield (
                    f"{one.field}.path: found {one.target!r} inside {above!r} of "
                    f"{first[above].field}; "
                    "expected paths of which none is inside the other: data cannot be changed"
                )


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path
