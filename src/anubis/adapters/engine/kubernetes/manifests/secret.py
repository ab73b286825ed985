"""The Secret with the files and keys of a run."""

from __future__ import annotations

from collections.abc import Mapping

from anubis.adapters.engine.kubernetes.manifests import volumes
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting


def files(setting: Setting, labels: Mapping[str, str]) -> Manifest:
    """Small texts, which never change while the run lives."""
    keys = {f"keys/{name}": text for name, text in setting.brought.keys.items()}
    texts = {**setting.plan.files, **keys}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": setting.names.secret,
            "namespace": setting.names.namespace,
            "labels": dict(labels),
        },
        "immutable": True,
        "stringData": {volumes.key(name): text for name, text in texts.items()},
    }
