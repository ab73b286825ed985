"""Build the parts of the cluster from Go modules, once for each version of them.

``components/<name>`` holds a ``go.mod`` and a ``go.sum``: versions and hashes of all that goes in.
A part is built again when one of the two, or the way it is built, has changed; the others stay.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable

from tests.cluster import locking
from tests.cluster.calling import call
from tests.cluster.layout import ClusterTrouble, Layout
from tests.cluster.saying import say

COMPONENTS = pathlib.Path(__file__).parent / "components"
OLDEST_GO = (1, 26)
PATIENCE_SECONDS = 3600.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """Programs that come from one Go module."""

    name: str
    module: str  #: the one whose version counts
    programs: tuple[tuple[str, str], ...]  #: name and package of each
    versions: tuple[str, ...] = ()  #: variables that the linker gives the version to
    manifests: str = ""  #: a folder of the module that is needed later

    @property
    def folder(self) -> pathlib.Path:
        """Where its go.mod is."""
        return COMPONENTS / self.name

    @property
    def version(self) -> str:
        """As its go.mod says."""
        found = re.search(
            rf"^(?:require )?\s*{re.escape(self.module)} (v\S+)",
            (self.folder / "go.mod").read_text(),
            re.MULTILINE,
        )
        if found is None:
            raise ClusterTrouble(f"{self.folder}/go.mod does not require {self.module}")
        return found[1]

    @property
    def linking(self) -> str:
        """What the linker is told: no symbols, and the version."""
        major, minor = self.version.removeprefix("v").split(".")[:2]
        blanks = {"version": self.version, "major": major, "minor": minor}
        return " ".join(["-s -w", *(f"-X {one.format(**blanks)}" for one in self.versions)])

    @property
    def key(self) -> str:
        """Changes with everything that the programs are made of."""
        parts = [(self.folder / name).read_bytes() for name in ("go.mod", "go.sum")]
        parts.append(repr((self.programs, self.linking, self.manifests)).encode())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


_KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
_KUBERNETES_VERSION = "k8s.io/component-base/version"

KUBERNETES = Component(
    name="kubernetes",
    module="k8s.io/kubernetes",
    programs=tuple((name, f"k8s.io/kubernetes/cmd/{name}") for name in _KUBERNETES_PROGRAMS),
    versions=(
        f"{_KUBERNETES_VERSION}.gitVersion={{version}}",
        f"{_KUBERNETES_VERSION}.gitMajor={{major}}",
        f"{_KUBERNETES_VERSION}.gitMinor={{minor}}",
    ),
)
ETCD = Component(
    name="etcd",
    module="go.etcd.io/etcd/server/v3",
    programs=(("etcd", "go.etcd.io/etcd/server/v3"),),
)
COREDNS = Component(
    name="coredns",
    module="github.com/coredns/coredns",
    programs=(("coredns", "github.com/coredns/coredns"),),
)
MPI_OPERATOR = Component(
    name="mpi-operator",
    module="github.com/kubeflow/mpi-operator",
    programs=(("mpi-operator", "github.com/kubeflow/mpi-operator/cmd/mpi-operator"),),
    manifests="manifests",
)
KWOK = Component(
    name="kwok",
    module="sigs.k8s.io/kwok",
    programs=(("kwok", "sigs.k8s.io/kwok/cmd/kwok"),),
    manifests="kustomize/stage",
)
HELM = Component(
    name="helm",
    module="helm.sh/helm/v3",
    programs=(("helm", "helm.sh/helm/v3/cmd/helm"),),
)
ESSENTIAL = (ETCD, KUBERNETES, COREDNS)
ALL = (*ESSENTIAL, MPI_OPERATOR, KWOK, HELM)


def build(place: Layout, wanted: Iterable[Component] = ESSENTIAL) -> None:
    """Make sure that the programs of these components are there. Raises ClusterTrouble."""
    place.make_folders()
    with locking.building(place):
        for component in wanted:
            if not is_built(place, component):
                need_go()
                _build(place, component)


def is_built(place: Layout, component: Component) -> bool:
    """Whether the programs are there, in the version that is wanted."""
    with contextlib.suppress(FileNotFoundError):
        if _key_file(place, component).read_text() == component.key:
            return all((place.bin / name).exists() for name, _ in component.programs)
    return False


def need_go() -> None:
    """Go, new enough. Raises ClusterTrouble."""
    if shutil.which("go") is None:
        raise ClusterTrouble("building a cluster needs Go 1.26 or newer, and there is no `go`")
    # Where a go.mod is: a Go that may fetch a newer one of itself does so only there.
    told = call("go", "-C", str(ETCD.folder), "env", "GOVERSION", seconds=600).strip()
    found = re.match(r"go(\d+)\.(\d+)", told)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GO:
        raise ClusterTrouble(f"building a cluster needs Go 1.26 or newer; `go` is {told}")


def _build(place: Layout, component: Component) -> None:
    say(f"building {component.name} {component.version} (once)")
    _key_file(place, component).unlink(missing_ok=True)
    # Beside the place where they are going: a rename does not disturb a program that runs.
    with tempfile.TemporaryDirectory(prefix="building-", dir=place.root) as folder:
        for name, package in component.programs:
            _go(
                component,
                "build",
                "-trimpath",
                f"-ldflags={component.linking}",
                "-o",
                f"{folder}/{name}",
                package,
            )
        for name, _ in component.programs:
            pathlib.Path(folder, name).rename(place.bin / name)
    if component.manifests:
        _keep_manifests(place, component)
    _key_file(place, component).write_text(component.key)


def _keep_manifests(place: Layout, component: Component) -> None:
    source = _go(component, "list", "-m", "-f", "{{.Dir}}", component.module).strip()
    target = place.manifests / component.name
    shutil.rmtree(target, ignore_errors=True)
    # Not their modes: Go's store is read-only, and we want to remove them one day.
    shutil.copytree(
        pathlib.Path(source, component.manifests), target, copy_function=shutil.copyfile
    )
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _go(component: Component, *words: str) -> str:
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",  # static: they also run in empty images
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
    }
    done = subprocess.run(
        ["go", *words],
        cwd=component.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    if done.returncode != 0:
        raise ClusterTrouble(f"{component.name} cannot be built: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _key_file(place: Layout, component: Component) -> pathlib.Path:
    return place.bin / f".{component.name}"
