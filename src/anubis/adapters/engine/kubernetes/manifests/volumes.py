"""What pods see beside their image: the record, shared memory, data, code, files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from anubis.adapters.engine.kubernetes.manifests import carrying
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import CLAIM, NO_SHARED_DATA, Setting
from anubis.domain import blanks, dataset
from anubis.domain.plan import Mount, Unit

EMIT: Final = "/tmp/benchmark-ai"  # noqa: S108 (inside the container, where the original had it)
RECORD: Final = "/var/lib/anubis-record"
OUTPUT: Final = "/var/log/anubis-pod"
DATASETS: Final = "/var/lib/anubis-datasets"
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 (inside the container)
SCRIPTS: Final = "/bai/scripts"

LINKS: Final = "mounts"
"""Below the datasets: a link for each content that was asked for."""

_DATA: Final = blanks.name(blanks.data(0)).partition(" ")[0]


def reads_files(unit: Unit) -> bool:
    """Whether it sees the files and keys of its run."""
    return any(mount.source == blanks.FILES for mount in unit.mounts)


def fetch_number(mount: Mount) -> int | None:
    """Which of the plan's fetches is seen here; None if none."""
    kind, _, number = blanks.name(mount.source).partition(" ")
    is_blank = mount.source != blanks.name(mount.source)
    return int(number) if is_blank and kind == _DATA else None


def fetched(unit: Unit) -> list[int]:
    """Which of the plan's fetches a unit reads, each once."""
    numbers = (fetch_number(mount) for mount in unit.mounts)
    return list(dict.fromkeys(number for number in numbers if number is not None))


def reference(setting: Setting, number: int) -> dataset.Reference:
    """What a pod asks the cache for."""
    fetch = setting.plan.fetches[number]
    carried = setting.brought.data.get(number)
    if carried is None:
        return fetch.reference
    return dataset.Reference(
        uri=carrying.path(carried), checksum=fetch.reference.checksum, unpack=fetch.unpack
    )


def volumes(setting: Setting, unit: Unit) -> Iterator[Manifest]:
    """All that the containers of a unit mount."""
    yield {"name": "record", "emptyDir": {}}
    yield {"name": "emit", "emptyDir": {}}
    yield {"name": "output", "hostPath": {"path": setting.site.pod_logs, "type": "Directory"}}
    if unit.resources.extended_shm:
        yield {"name": "dshm", "emptyDir": _memory(unit.resources.memory_bytes)}
    if unit.script:
        yield {"name": "scripts", "emptyDir": {}}
    if reads_files(unit):
        yield _files(setting)
    numbers = fetched(unit)
    if numbers:
        yield _datasets(setting.site.datasets)
    if unit.script or any(number in setting.brought.data for number in numbers):
        yield carrying.volume(setting)
    if any(number in setting.brought.data for number in numbers):
        yield {"name": "brought", "emptyDir": {}}


def _memory(limit: int | None) -> Manifest:
    """What is written there counts as memory of the unit, so it may be as much."""
    most: Manifest = {"sizeLimit": str(limit)} if limit else {}
    return {"medium": "Memory", **most}


def _datasets(place: str) -> Manifest:
    if place == NO_SHARED_DATA:
        return {"name": "datasets", "emptyDir": {}}
    if place.startswith(CLAIM):
        claim = {"claimName": place.removeprefix(CLAIM)}
        return {"name": "datasets", "persistentVolumeClaim": claim}
    return {"name": "datasets", "hostPath": {"path": place, "type": "DirectoryOrCreate"}}


def _files(setting: Setting) -> Manifest:
    items = [
        {"key": key(name), "path": name, "mode": _mode(name)}
        for name in (*setting.plan.files, *(f"keys/{name}" for name in setting.brought.keys))
    ]
    # Decimal, as JSON knows no other: 0644.
    secret = {"secretName": setting.names.secret, "items": items, "defaultMode": 0o644}
    return {"name": "files", "secret": secret}


def key(name: str) -> str:
    """Under which a Secret has a file: no slashes are allowed."""
    return name.replace("/", ".")


def _mode(name: str) -> int:
    """A private key that others may read is refused by ssh."""
    return 0o600 if name.startswith("keys/") and not name.endswith(".pub") else 0o644


def mounts(setting: Setting, unit: Unit) -> Iterator[Manifest]:
    """What the program itself sees."""
    yield {"name": "emit", "mountPath": EMIT}
    if unit.resources.extended_shm:
        yield {"name": "dshm", "mountPath": SHARED_MEMORY}
    for mount in unit.mounts:
        number = fetch_number(mount)
        if number is not None:
            link = f"{LINKS}/{reference(setting, number).key}"
            yield {
                "name": "datasets",
                "mountPath": mount.target,
                "subPath": link,
                "readOnly": True,
            }
        elif mount.source == blanks.FILES:
            yield {"name": "files", "mountPath": mount.target, "readOnly": True}
        elif mount.source == blanks.SCRIPTS:
            yield {"name": "scripts", "mountPath": mount.target}
