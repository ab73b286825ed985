"""A namespace of the test cluster for a bench, which is gone afterwards with all that is in it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster import control

from anubis.adapters.engine.kubernetes.access import Access

PATIENCE = 120.0
"""Seconds for kubectl, and for a namespace to be gone."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """One namespace, for kubectl and for our own client."""

    name: str
    kubeconfig: str

    @property
    def access(self) -> Access:
        """How our own client reaches it."""
        return Access(kubeconfig=self.kubeconfig, namespace=self.name)

    def kubectl(self, *words: str, given: str | None = None, check: bool = True) -> str:
        """What kubectl answers."""
        command = ["kubectl", f"--kubeconfig={self.kubeconfig}", f"--namespace={self.name}", *words]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *words: str) -> Any:
        """One object, or a list of them."""
        return json.loads(self.kubectl("get", *words, "--output=json"))


@contextlib.contextmanager
def space() -> Iterator[Space]:
    """A new namespace. Says what to do where there is no cluster."""
    kubeconfig = control.kubeconfig()
    if shutil.which("kubectl") is None or not Path(kubeconfig).is_file():
        sys.exit("there is no test cluster, or no kubectl: make cluster")
    made = Space(name=f"anubis-bench-{secrets.token_hex(4)}", kubeconfig=kubeconfig)
    made.kubectl("create", "namespace", made.name)
    try:
        yield made
    finally:
        _remove(made)


def _remove(made: Space) -> None:
    """Also what waits for somebody who fetches its output, since nobody will."""
    forced = ("--all", "--force", "--grace-period=0", "--wait=false")
    made.kubectl("delete", "jobs", "--all", "--wait=false", check=False)
    made.kubectl("delete", "pods", *forced, check=False)
    made.kubectl("delete", "namespace", made.name, "--wait=false", check=False)
    give_up = time.monotonic() + PATIENCE
    words = ("get", "namespace", made.name, "--ignore-not-found", "--output=name")
    while made.kubectl(*words, check=False).strip() and time.monotonic() < give_up:
        time.sleep(0.5)
