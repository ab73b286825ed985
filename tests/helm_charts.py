"""Our chart, as ``helm`` renders it."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests import kubernetes_schemas, real_parts

CHART = Path(__file__).parents[1] / "deploy/chart/anubis"
RELEASE, NAMESPACE = "bench", "measuring"


@functools.cache
def program() -> str:
    """The path of helm. Skips where there is none."""
    built = Path("~/.cache/anubis-cluster/bin/helm").expanduser()
    found = shutil.which("helm") or (str(built) if built.exists() else "")
    real_parts.need(found, "helm is not installed, and make cluster has not built it")
    return found


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run it."""
    return subprocess.run([program(), *words], capture_output=True, text=True)


def rendered(*words: str) -> Sequence[Mapping[str, Any]]:
    """The objects of the chart, with options such as ``--set``."""
    version = ("--kube-version", kubernetes_schemas.RELEASE)
    made = helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *version, *words)
    assert made.returncode == 0, made.stderr
    return [one for one in yaml.safe_load_all(made.stdout) if one]


def only(objects: Sequence[Mapping[str, Any]], kind: str, name: str = "") -> Mapping[str, Any]:
    """The one object of a kind."""
    [found] = [
        one
        for one in objects
        if one["kind"] == kind and (not name or one["metadata"]["name"] == name)
    ]
    return found
