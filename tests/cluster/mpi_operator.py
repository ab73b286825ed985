"""The MPI operator, installed as its project says: its manifests, and a pod of its own image.

Off unless somebody turns it on: runs without it take another way, which is tested as well.
"""

from __future__ import annotations

from tests.cluster import building, images, second_node
from tests.cluster.calling import kubectl, until
from tests.cluster.layout import Layout

NAMESPACE = "mpi-operator"
DEFINITION = "mpijobs.kubeflow.org"


def up(place: Layout) -> None:
    """Install it, and wait until it works."""
    building.build(place, [building.MPI_OPERATOR])
    version = building.MPI_OPERATOR.version.removeprefix("v")
    archive = place.images / f"mpi-operator-{building.MPI_OPERATOR.key[:12]}.tar"
    if not archive.exists():
        # The name that its manifests use.
        name = f"docker.io/mpioperator/mpi-operator:{version}"
        images.pack(archive, name, {"mpi-operator": place.bin / "mpi-operator"})
    for node in second_node.nodes(place):
        images.load_archive(node, archive)
    # On the server's side: the definition is too long for an annotation.
    kubectl(place, "apply", "--server-side", "-k", _manifests(place))
    until(
        lambda: _is_established(place),
        otherwise=f"the API server does not take up {DEFINITION}",
        seconds=60,
    )
    kubectl(
        *(place, "rollout", "status", "--namespace", NAMESPACE, "--timeout=120s"),
        "deployment/mpi-operator",
    )


def down(place: Layout) -> None:
    """Remove it, with all its jobs."""
    building.build(place, [building.MPI_OPERATOR])
    kubectl(place, "delete", "--ignore-not-found", "-k", _manifests(place))


def is_up(place: Layout) -> bool:
    """Whether the cluster knows MPIJobs."""
    return bool(kubectl(place, "get", "customresourcedefinition", DEFINITION, check=False))


def _is_established(place: Layout) -> bool:
    # Not `kubectl wait`: it fails on a definition whose conditions are null, as all begin.
    status = "{.status.conditions[?(@.type=='Established')].status}"
    told = ("customresourcedefinition", DEFINITION, f"--output=jsonpath={status}")
    return kubectl(place, "get", *told, check=False) == "True"


def _manifests(place: Layout) -> str:
    return str(place.manifests / "mpi-operator" / "overlays" / "standalone")
