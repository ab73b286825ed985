"""Call other programs, and turn their failures into words."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import IO

from tests.cluster.layout import ClusterTrouble, Layout


def call(
    *command: str, check: bool = True, given: str | IO[bytes] = "", seconds: float = 120
) -> str:
    """What a program printed; empty if it failed and that does not matter."""
    text = given if isinstance(given, str) else None
    stream = None if isinstance(given, str) else given
    try:
        done = subprocess.run(
            command,
            input=text.encode() if text is not None else None,
            stdin=stream,
            capture_output=True,
            timeout=seconds,
        )
    except FileNotFoundError:
        raise ClusterTrouble(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise ClusterTrouble(f"{' '.join(command[:3])} took over {seconds:.0f} s") from None
    if done.returncode == 0:
        return done.stdout.decode(errors="replace")
    if check:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-2000:]
        raise ClusterTrouble(f"{' '.join(command[:4])} failed: {said}")
    return ""


def works(*command: str, seconds: float = 20) -> bool:
    """Whether a program ends well."""
    try:
        call(*command, seconds=seconds)
    except ClusterTrouble:
        return False
    return True


def until(condition: Callable[[], bool], *, otherwise: str, seconds: float) -> None:
    """Wait for it. Raises ClusterTrouble with these words if it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterTrouble(otherwise)
        time.sleep(0.2)


def kubectl_program(place: Layout) -> str:
    """The one that was built, or else the machine's own: with kind, nothing is built."""
    built = place.bin / "kubectl"
    return str(built) if built.exists() else "kubectl"


def kubectl(place: Layout, *words: str, check: bool = True, given: str = "") -> str:
    """Call ``kubectl`` as the administrator of the cluster."""
    program = kubectl_program(place)
    return call(
        program, f"--kubeconfig={place.kubeconfig}", *words, check=check, given=given, seconds=180
    )
