"""Runs on Kubernetes: one against kubectl, and hundreds at once on nodes that exist only on paper.

Usage: python -m bench.kubernetes [--rounds 15] [--sizes 50,100,200,500] [--only overhead|scale]

Needs the test cluster (``make cluster``). Overhead: a run that does nothing on the real node, from
submit to terminal, against ``kubectl create job`` and ``kubectl wait``, in turns. Scale: that many
runs submitted at once to one ``anubis serve``; nodes on paper take their pods, and a kubelet on
paper says how far they are and streams their journals, so that all of the service's own path is
real. Plain Jobs on the same nodes show what the cluster itself needs. Figures and ratios; nothing
is asserted about time, but every run must have succeeded.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    options = _options()
    # Not above: who lists the benches, or asks for help, need not have a cluster or its client.
    from bench.kubernetes import overhead, scale
    from bench.kubernetes.space import space

    with _cluster():
        if options.only != "scale":
            _load_images()
            from tests import docker_images, own_image

            with space() as here:
                seconds = overhead.measure(
                    here,
                    image=docker_images.BUSYBOX.tag,
                    own=own_image.NAME,
                    rounds=options.rounds,
                )
            overhead.report(seconds)
        if options.only != "overhead":
            sizes = [int(one) for one in options.sizes.split(",")]
            print(f"\nruns submitted at once, on nodes on paper: {options.sizes}", flush=True)
            with space() as here:
                results = scale.measure(here, sizes)
            scale.report(results)
            if any(set(one.states) != {"SUCCEEDED"} for one in results.ours):
                sys.exit("not all runs have succeeded")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", default="50,100,200,500", help="numbers of runs")
    parser.add_argument("--only", choices=("overhead", "scale"))
    return parser.parse_args()


@contextlib.contextmanager
def _cluster() -> Iterator[None]:
    """The test cluster, of which nobody kills parts meanwhile."""
    from tests.cluster import control, layout, locking

    held = locking.sharing(layout.layout()) if control.is_here() else contextlib.nullcontext()
    with held:  # before we ask: a test may have killed a part of it
        if trouble := control.trouble():
            sys.exit(f"there is no cluster for it (make cluster): {trouble}")
        yield


def _load_images() -> None:
    """Our own image, and the one whose program does nothing, into the cluster."""
    command = [sys.executable, "-m", "tests.cluster", "load"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
