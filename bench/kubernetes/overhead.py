"""One run that does nothing against kubectl with a Job of the same image and command.

Both take turns in each round, so that a slow minute of the machine hits both alike. Ours is a whole
run on an installation that is up: submit, queue, Job, collection, and the end stored; its objects
are deleted after that, so a round waits for it before the other's turn.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from pathlib import Path

from anubis.bootstrap.application import Application
from anubis.domain.document import Document
from anubis.domain.run import RunState
from bench import installation
from bench.kubernetes.space import Space

ENDED, DELETED = "kubectl create job + wait", "  and kubectl delete job"
STORED, SEEN, REMOVED = "Anubis, submit to stored", "  to seen", "  to removed"
COMMAND = ("/bin/busybox", "true")

NOTHING = """\
spec_version = "0.1.0"
[info]
description = "Does nothing in a pod: what remains is our overhead"
execution_engine = "kubernetes"
[env]
docker_image = "{image}"
[ml]
benchmark_code = "{command}"
"""

CONFIG = """\
kubernetes_namespace = "{space}"
kubernetes_image = "{own}"
kubernetes_datasets = "none"
kubeconfig = "{kubeconfig}"
"""

Timings = dict[str, list[float]]


def measure(space: Space, *, image: str, own: str, rounds: int) -> Timings:
    """Seconds of each, of every round."""
    return asyncio.run(_measure(space, image, own, rounds))


async def _measure(space: Space, image: str, own: str, rounds: int) -> Timings:
    seconds: Timings = {name: [] for name in (ENDED, DELETED, STORED, SEEN, REMOVED)}
    content = NOTHING.format(image=image, command=" ".join(COMMAND)).encode()
    nothing = Document(name="nothing.toml", directory="", content=content)
    more = CONFIG.format(space=space.name, own=own, kubeconfig=space.kubeconfig)
    async with installation.installation(slots=1, more=more) as application:
        folder = application.settings.cluster
        await _ours(application, nothing, folder)  # the first one loads the library
        await asyncio.to_thread(_peer, space, image)
        for _ in range(rounds):
            for name, value in zip(
                (ENDED, DELETED), await asyncio.to_thread(_peer, space, image), strict=True
            ):
                seconds[name].append(value)
            ours = await _ours(application, nothing, folder)
            for name, value in zip((STORED, SEEN, REMOVED), ours, strict=True):
                seconds[name].append(value)
    return seconds


def _peer(space: Space, image: str) -> tuple[float, float]:
    """Seconds until the Job was complete, and until it was deleted."""
    name = f"nothing-{secrets.token_hex(4)}"
    began = time.perf_counter()
    space.kubectl("create", "job", name, f"--image={image}", "--", *COMMAND)
    space.kubectl("wait", "--for=condition=complete", f"job/{name}", "--timeout=60s")
    ended = time.perf_counter() - began
    space.kubectl("delete", "job", name)
    return ended, time.perf_counter() - began


async def _ours(
    application: Application, nothing: Document, folder: Path
) -> tuple[float, float, float]:
    """Seconds until the end was stored, until it was seen, and until all of it was removed."""
    began, clock = time.perf_counter(), time.time()
    run = await installation.run_to_end(application, nothing)
    seen = time.perf_counter() - began
    assert run.state is RunState.SUCCEEDED, run.outcome
    while any(folder.glob(f"{run.id}*")):  # noqa: ASYNC110 (a file tells no event)
        await asyncio.sleep(0.01)
    return run.state_since.timestamp() - clock, seen, time.perf_counter() - began


def report(seconds: Timings) -> None:
    """Print medians and ratios."""
    peer = statistics.median(seconds[ENDED])
    print(f"{'':<28}{'median ms':>10}{'best':>8}{'x kubectl':>11}{'rounds':>8}")
    for name, values in seconds.items():
        median = statistics.median(values)
        figures = f"{median * 1e3:>10.0f}{min(values) * 1e3:>8.0f}{median / peer:>11.2f}"
        print(f"{name:<28}{figures}{len(values):>8}")
    whole = statistics.median(seconds[REMOVED]) / statistics.median(seconds[DELETED])
    print(f"\nsubmit to terminal: {statistics.median(seconds[STORED]) / peer:.2f}x {ENDED}")
    print(f"with all removed:   {whole:.2f}x {ENDED} + delete")
