"""Have in a pod what its benchmark needs before it starts: data, code, and those it will call.

What an init container does, with the same fetcher as everywhere else. Data goes into a cache that
all pods of a node share (or of a cluster, where the volume is a shared one): of several pods that
want the same, one transfers it. A link below ``mounts/`` leads to it, under a name that the pod's
manifest knows before anything is fetched.

Nobody on a node knows when a run is over and its data may go. So those who need it say so: whoever
lives in the pod touches the run's pins once a minute, the fetcher first and the recorder after it.
Pins that nobody touched for a quarter of an hour belong to a pod that is gone, and the next fetcher
on the node drops them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import secrets
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.adapters.dataset_source.available import sources
from anubis.adapters.script_store import unpacking
from anubis.domain.dataset import Dataset, Reference, Report
from anubis.domain.errors import SourceUnavailable, StoreUnavailable
from anubis.domain.run import RunId
from anubis.runtime.bringing import open_up
from anubis.stages.fetching.fetching import fetch_all

MOUNTS: Final = "mounts"
TOUCH_SECONDS: Final = 60.0
SILENCE: Final = timedelta(minutes=15)
"""After which a pod is taken for gone. A recorder that was killed is back within five minutes."""

HOSTS_SECONDS: Final = 120.0
HOSTS_PAUSE_SECONDS: Final = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """One dataset."""

    reference: Reference
    link: str  #: the name below ``mounts/``
    parts: tuple[str, ...] = ()  #: files that it is put together of, if the service had it
    is_folder: bool = False  #: whether the parts are a tar of what is in a folder


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """All that a pod needs."""

    run: RunId
    datasets: Path
    wanted: tuple[Wanted, ...] = ()
    scripts: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    scripts_target: Path = Path("/bai/scripts")
    hosts: tuple[str, ...] = ()
    patience: timedelta = timedelta(hours=24)


async def bring(order: Order, report: Report) -> None:
    """Have everything in its place.

    Raises DatasetInvalid if data is not what the descriptor says, and other AnubisErrors.
    """
    try:
        async with asyncio.timeout(order.patience.total_seconds()):
            await _bring_data(order, report)
            for name, parts in order.scripts.items():
                await asyncio.to_thread(_unpack, parts, name, order.scripts_target)
            if order.scripts:
                await asyncio.to_thread(open_up, order.scripts_target)
            await _wait_for_hosts(order.hosts)
    except TimeoutError:
        raise SourceUnavailable(
            f"not all data came within limits.fetching, {order.patience}"
        ) from None
    except OSError as error:
        where = error.filename or order.datasets
        raise StoreUnavailable(f"{where} cannot be read or written: {error.strerror}") from error


async def _bring_data(order: Order, report: Report) -> None:
    if not order.wanted:
        return
    clock = SystemClock()
    cache = DirectoryDatasetCache(order.datasets, sources(), clock)
    await cache.unpin_silent(clock.now() - SILENCE)
    for one in order.wanted:
        if one.parts:
            await asyncio.to_thread(_put_together, one)
    references = [one.reference for one in order.wanted]
    async with _touching(order.datasets / "pins" / order.run):
        found = await fetch_all(references, cache, order.run, report)
    for one, dataset in zip(order.wanted, found, strict=True):
        _link(order.datasets, one.link, dataset)


@contextlib.asynccontextmanager
async def _touching(pins: Path) -> AsyncIterator[None]:
    """Say that somebody needs what is pinned, also while more of it comes."""

    def touch() -> None:
        with contextlib.suppress(FileNotFoundError):  # nothing is pinned yet
            os.utime(pins)

    async def keep_touching() -> None:
        while True:
            touch()
            await asyncio.sleep(TOUCH_SECONDS)

    task = asyncio.create_task(keep_touching(), name="touch pins")
    try:
        yield
        touch()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _link(datasets: Path, name: str, dataset: Dataset) -> None:
    """Relative, for the node knows the folder by another path; and replaced in one step."""
    folder = datasets / MOUNTS
    folder.mkdir(mode=0o755, exist_ok=True)
    fresh = folder / f".{name}.{secrets.token_hex(4)}"
    fresh.symlink_to(os.path.relpath(dataset.path, folder))
    fresh.rename(folder / name)


def _put_together(wanted: Wanted) -> None:
    """What the service had on its disk, from the parts in which it travelled."""
    place = Path(wanted.reference.uri)
    shutil.rmtree(place.parent, ignore_errors=True)  # of a fetcher that was killed
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if wanted.is_folder:
        place.mkdir(mode=0o700)
        _unpack(wanted.parts, place.name, place)
    else:
        _join(wanted.parts, place)


def _join(parts: Sequence[str], place: Path) -> None:
    with place.open("xb") as file:
        for part in parts:
            file.write(Path(part).read_bytes())


def _unpack(parts: Sequence[str], name: str, folder: Path) -> None:
    """Safely, as the script store does; see there."""
    whole = folder.parent / f".{secrets.token_hex(8)}.tar"
    try:
        _join(parts, whole)
        with whole.open("rb") as file:
            unpacking.unpack(file, name, folder)
    finally:
        whole.unlink(missing_ok=True)


async def _wait_for_hosts(hosts: Sequence[str]) -> None:
    """Until all have an address, or we have waited long enough: who calls them may try again."""
    try:
        async with asyncio.timeout(HOSTS_SECONDS):
            for host in hosts:
                while not await asyncio.to_thread(_has_address, host):  # noqa: ASYNC110 - no news
                    await asyncio.sleep(HOSTS_PAUSE_SECONDS)
    except TimeoutError:
        sys.stderr.write(f"not all of these have an address yet: {', '.join(hosts)}\n")


def _has_address(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False
