"""What tests do to the cluster: kill a part of it, start it again, turn on what is off.

``with control.away("kubelet"): ...``. A test that does any of this must be alone with the cluster:
it is marked ``@pytest.mark.cluster(alone=True)``.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from tests.cluster import calling, layout, lifecycle, locking, parts, processes, simulating
from tests.cluster import mpi_operator as operator
from tests.cluster import second_node as second
from tests.cluster.layout import ClusterTrouble

STAYING = (
    "go-template={{range .items}}{{if not .metadata.deletionTimestamp}}"
    "{{.kind}}/{{.metadata.name}} {{end}}{{end}}"
)
"""What nobody is deleting."""


def kubeconfig() -> str:
    """The file that says how to reach the cluster that tests use."""
    return os.environ.get("ANUBIS_TEST_KUBECONFIG") or str(layout.layout().kubeconfig)


def is_here() -> bool:
    """Whether that is the one which was started here, and not somebody's own."""
    return kubeconfig() == str(layout.layout().kubeconfig)


def trouble() -> str:
    """Why there is no cluster for tests; empty if it answers."""
    if not pathlib.Path(kubeconfig()).exists():
        return f"there is no {kubeconfig()}"
    try:
        _kubectl("get", "--raw", "/readyz")
    except ClusterTrouble as error:
        return str(error)
    return ""


def left_behind() -> list[str]:
    """Namespaces that tests have made, and what runs left in the usual one, unless it is going; and
    a second node.
    """
    spaces = _kubectl("get", "namespaces", "-o", STAYING).split()
    usual = ("Namespace/kube-", "Namespace/default", f"Namespace/{operator.NAMESPACE}")
    ours = ("--selector", "app.kubernetes.io/managed-by=anubis", "-o", STAYING)
    left = _kubectl("get", "jobs,pods,secrets,services", "--namespace", "default", *ours).split()
    if second.exists(layout.layout()):
        left.append(f"Node/{layout.SECOND.name}")
    return [*(name for name in spaces if not name.startswith(usual)), *left]


def can_kill() -> bool:
    """Whether its parts are processes of this machine, which not every cluster's are."""
    return is_here() and processes.find(layout.layout(), "containerd") is not None


def is_up(name: str) -> bool:
    """Whether a part runs: kube-apiserver, kubelet, kube-controller-manager, etcd, ..."""
    parts.find(name)
    return processes.find(layout.layout(), name) is not None


def kill(name: str) -> None:
    """End a part as a power cut would, and wait until it is gone."""
    parts.find(name)
    processes.kill(layout.layout(), name)


def start(name: str) -> None:
    """Start a part again, and wait until it answers."""
    place = layout.layout()
    parts.start(place, parts.find(name))
    parts.wait(place, parts.find(name))


@contextlib.contextmanager
def away(name: str) -> Iterator[None]:
    """Have the cluster without one of its parts for a while."""
    kill(name)
    try:
        yield
    finally:
        start(name)


def heal() -> None:
    """Start again what an interrupted test has left dead."""
    place = layout.layout()
    if place.kubeconfig.exists() and lifecycle.is_torn(place):
        with contextlib.suppress(ClusterTrouble):  # then tests will say what is wrong
            lifecycle.up(place, with_kind=False)
    if second.is_forsaken(place):
        with contextlib.suppress(ClusterTrouble), locking.changing(place):
            _end_forsaken(place)


def _end_forsaken(place: layout.Layout) -> None:
    if second.is_forsaken(place):  # still, after waiting for others
        second.down(place)


def load(*names: str) -> None:
    """Copy images from Docker to all nodes of the cluster; quick if they are there."""
    lifecycle.load(layout.layout(), names)


def has_mpi_operator() -> bool:
    """Whether it is on."""
    return operator.is_up(layout.layout())


@contextlib.contextmanager
def mpi_operator() -> Iterator[None]:
    """Have the MPI operator for a while, unless it is there anyway."""
    place = layout.layout()
    if operator.is_up(place):
        yield
        return
    operator.up(place)
    try:
        yield
    finally:
        operator.down(place)


@contextlib.contextmanager
def second_node(*images: str) -> Iterator[str]:
    """Have another real node for a while, with these images of Docker; its name.

    Raises ClusterTrouble where there can be none.
    """
    place = layout.layout()
    with locking.changing(place):
        was_up = second.is_whole(place)
        second.up_for_us(place)
    try:
        load(*images)
        yield layout.SECOND.name
    finally:
        with locking.changing(place):
            if not was_up or not second.is_whole(place):
                second.down(place)


def kill_second_node() -> None:
    """End it as a power cut would: nothing of it says a last word."""
    second.die(layout.layout())


@contextlib.contextmanager
def simulated_nodes(
    *names: str, labels: Mapping[str, str], resources: Mapping[str, str]
) -> Iterator[Sequence[str]]:
    """Have nodes for a while that exist only on paper; see ``simulating``."""
    with simulating.nodes(layout.layout(), names, labels=labels, resources=resources):
        yield names


def _kubectl(*words: str) -> str:
    program = calling.kubectl_program(layout.layout())
    return calling.call(program, f"--kubeconfig={kubeconfig()}", *words)
