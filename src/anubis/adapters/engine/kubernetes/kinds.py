"""The kinds of objects that we speak of with a cluster, and where its API has them.

Objects are plain JSON on both sides. Models of a client library would be one more thing that must
know every field of every version; and they lose the fields that they do not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

Found = Mapping[str, Any]
"""An object as the API tells it. Who reads one turns it at once into a value of our own."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of objects."""

    group_version: str  #: ``v1``, ``batch/v1``
    kind: str  #: ``Job``
    plural: str  #: ``jobs``: its name in addresses and in rights
    is_namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group, empty for the oldest kinds."""
        group, slash, _ = self.group_version.rpartition("/")
        return group if slash else ""

    def path(self, namespace: str, name: str = "", part: str = "") -> str:
        """Where the API has all of this kind, one, or a part of one (``log``)."""
        root = "/apis" if self.group else "/api"
        place = ["namespaces", quote(namespace, safe="")] if self.is_namespaced else []
        rest = [quote(word, safe="") for word in (name, part) if word]
        return "/".join([root, self.group_version, *place, self.plural, *rest])


POD = Kind(group_version="v1", kind="Pod", plural="pods")
SERVICE = Kind(group_version="v1", kind="Service", plural="services")
SECRET = Kind(group_version="v1", kind="Secret", plural="secrets")
CONFIG_MAP = Kind(group_version="v1", kind="ConfigMap", plural="configmaps")
CLAIM = Kind(group_version="v1", kind="PersistentVolumeClaim", plural="persistentvolumeclaims")
EVENT = Kind(group_version="v1", kind="Event", plural="events")
NAMESPACE = Kind(group_version="v1", kind="Namespace", plural="namespaces", is_namespaced=False)
NODE = Kind(group_version="v1", kind="Node", plural="nodes", is_namespaced=False)
JOB = Kind(group_version="batch/v1", kind="Job", plural="jobs")
CRON_JOB = Kind(group_version="batch/v1", kind="CronJob", plural="cronjobs")
MPI_JOB = Kind(group_version="kubeflow.org/v2beta1", kind="MPIJob", plural="mpijobs")
LEASE = Kind(group_version="coordination.k8s.io/v1", kind="Lease", plural="leases")

KINDS = (
    POD,
    SERVICE,
    SECRET,
    CONFIG_MAP,
    CLAIM,
    EVENT,
    NAMESPACE,
    NODE,
    JOB,
    CRON_JOB,
    MPI_JOB,
    LEASE,
)

_BY_NAME = {(kind.group_version, kind.kind): kind for kind in KINDS}


def kind_of(manifest: Mapping[str, object]) -> Kind:
    """The kind of an object. KeyError for one that is not in the table: a defect of ours."""
    return _BY_NAME[str(manifest["apiVersion"]), str(manifest["kind"])]


def label_selector(labels: Mapping[str, str]) -> str:
    """The words that select objects by labels which must all be so."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """What applying an object came to."""

    object: Found  #: as the cluster has it now
    created: bool
    """Whether this call made it. False too where the answer to a first try was lost on its way."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The objects of a kind, as they all were at one moment."""

    items: Sequence[Found]
    version: str  #: the moment; a watch goes on from here


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """An object with which others are to be deleted."""

    kind: Kind
    name: str
    uid: str

    def reference(self) -> dict[str, object]:
        """As metadata of the owned spell it."""
        return {
            "apiVersion": self.kind.group_version,
            "kind": self.kind.kind,
            "name": self.name,
            "uid": self.uid,
        }
