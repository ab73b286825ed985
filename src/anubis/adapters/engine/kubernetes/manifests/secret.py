"""The Secret with the files and keys of a run, and what is fetched from secret addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anubis.adapters.engine.kubernetes.manifests import containers, volumes
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting


def secret(setting: Setting, labels: Mapping[str, str]) -> Iterator[Manifest]:
    """Small texts, which never change while the run lives; nothing if there are none."""
    units = setting.plan.units
    texts = dict(_tasks(setting))
    if any(volumes.reads_files(unit) for unit in units):
        keys = {f"keys/{name}": text for name, text in setting.brought.keys.items()}
        texts |= {volumes.key(name): text for name, text in {**setting.plan.files, **keys}.items()}
    if not texts:
        return
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": setting.names.secret,
            "namespace": setting.names.namespace,
            "labels": dict(labels),
        },
        "immutable": True,
        "stringData": texts,
    }


def _tasks(setting: Setting) -> Iterator[tuple[str, str]]:
    for unit in setting.plan.units:
        if (task := containers.secret_task(setting, unit)) is not None:
            yield containers.task_key(unit), task
