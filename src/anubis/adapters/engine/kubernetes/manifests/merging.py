"""Lay a part of an object over a whole one, as Kubernetes' own patches do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest

_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "topologySpreadConstraints": "topologyKey",
    "hostAliases": "ip",
}
"""Lists in which an entry is known by one of its fields; others are lengthened."""


def merged(whole: Mapping[str, object], part: Mapping[str, object]) -> Manifest:
    """The whole with the part laid over it; what the part says has the last word."""
    result = dict(whole)
    for name, value in part.items():
        result[name] = _joined(name, result[name], value) if name in result else value
    return result


def _joined(name: str, below: object, above: object) -> object:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return merged(below, above)
    if isinstance(below, list) and isinstance(above, list):
        return _lists(below, above, _KEYS.get(name, ""))
    return above


def _lists(below: Sequence[object], above: Sequence[object], key: str) -> list[object]:
    if not key:
        return [*below, *(entry for entry in above if entry not in below)]
    found = {_field(entry, key): entry for entry in below}
    for entry in above:
        name = _field(entry, key)
        found[name] = _joined("", found[name], entry) if name in found else entry
    return list(found.values())


def _field(entry: object, key: str) -> str:
    """What an entry is known by, whatever somebody wrote there."""
    known = cast("Mapping[str, object]", entry).get(key) if isinstance(entry, Mapping) else entry
    return str(known)
