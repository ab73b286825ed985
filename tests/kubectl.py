"""The test cluster as an operator sees it: ``kubectl``, and a namespace that is gone afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests import real_parts
from tests.cluster import control

KUBECONFIG = Path(control.kubeconfig())
Seen = TypeVar("Seen")
PATIENCE = 60.0
"""Seconds after which something that should happen will not happen any more."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A namespace."""

    name: str
    kubeconfig: Path = KUBECONFIG

    def kubectl(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Whatever it comes to."""
        return subprocess.run(
            [program(), "--kubeconfig", str(self.kubeconfig), "--namespace", self.name, *words],
            input=stdin,
            capture_output=True,
            text=True,
        )

    def ask(self, *words: str, stdin: str | None = None) -> str:
        """What it says; it must succeed."""
        told = self.kubectl(*words, stdin=stdin)
        assert told.returncode == 0, f"kubectl {' '.join(words)}: {told.stderr}"
        return told.stdout

    def get(self, *words: str) -> Any:
        """An object, or ``items``."""
        return json.loads(self.ask("get", *words, "--output", "json"))

    def as_account(self, account: str, folder: Path) -> Space:
        """The same space for who has the token of a service account, and nothing else."""
        token = self.ask("create", "token", account, "--duration", "1h").strip()
        config = json.loads(self.ask("config", "view", "--raw", "--minify", "--output", "json"))
        config["users"] = [{"name": account, "user": {"token": token}}]
        config["contexts"][0]["context"] |= {"user": account, "namespace": self.name}
        path = folder / f"{account}.kubeconfig"
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return Space(name=self.name, kubeconfig=path)


def program() -> str:
    """The path of kubectl. Skips where there is none."""
    built = Path("~/.cache/anubis-cluster/bin/kubectl").expanduser()
    found = shutil.which("kubectl") or (str(built) if built.exists() else "")
    real_parts.need(found, "kubectl is not installed, and make cluster has not built it")
    return found


@contextlib.contextmanager
def space(purpose: str) -> Iterator[Space]:
    """A namespace of one's own. Skips where there is no cluster."""
    real_parts.need_cluster()
    made = Space(name=f"{purpose}-{secrets.token_hex(4)}")
    told = made.kubectl("create", "namespace", made.name)
    real_parts.need(not told.returncode, f"the test cluster does not answer: {told.stderr}")
    try:
        yield made
    finally:
        # A pod waits for whoever fetches its output; here nobody will.
        forced = ("--all", "--force", "--grace-period=0", "--wait=false")
        made.kubectl("delete", "deployments,jobs", "--all", "--wait=false")
        made.kubectl("delete", "pods", *forced)
        made.kubectl("delete", "namespace", made.name, "--wait=false")


def until(look: Callable[[], Seen | None], what: str) -> Seen:
    """Look until there is something to see."""
    give_up = time.monotonic() + PATIENCE
    while not (seen := look()):
        assert time.monotonic() < give_up, what
        time.sleep(0.2)
    return seen
