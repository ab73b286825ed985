"""What the objects of a run depend on besides its plan: the installation, and what is brought."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.naming import Names
from anubis.domain.plan import Plan

NO_SHARED_DATA: Final = "none"
CLAIM: Final = "pvc:"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """What the installation says of the cluster."""

    namespace: str
    installation: str  #: its id, as labels have it
    image: str  #: our own, for what fetches and what records
    pod_logs: str = "/var/log/pods"  #: where machines keep what containers write
    datasets: str = "/var/lib/anubis/datasets"
    """Where machines keep data: a path of theirs, ``pvc:`` and the name of a claim, or ``none``,
    where every pod fetches its own."""
    fetch_secret: str = ""  #: a Secret whose entries become variables of what fetches; empty: none
    drain: timedelta = timedelta(hours=24)  #: how long a pod waits until its journal was fetched
    ttl: timedelta = timedelta(hours=24)  #: how long ended objects stay if nobody removes them
    domain: str = "cluster.local"  #: of the cluster
    has_mpi_operator: bool = False
    overlay: Manifest = dataclasses.field(default_factory=dict)
    """``metadata`` and ``spec`` of a pod, in parts: has the last word in every pod."""
    pull_policy: str = "IfNotPresent"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """Data that only whoever starts the run can read: a file, or a folder as an archive."""

    name: str  #: of the file or folder
    content: bytes
    is_folder: bool = False  #: whether the content is an uncompressed tar of what is in a folder


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Brought:
    """What the engine brings along for a run."""

    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Files of the keys made for this run, by name, where the plan needs them."""
    scripts: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    """Archives of code by name: all of ``plan.scripts``."""
    data: Mapping[int, Carried] = dataclasses.field(default_factory=dict)
    """By number in ``Plan.fetches``, what pods cannot fetch: files of this machine."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """All that a run's objects depend on."""

    site: Site
    names: Names
    plan: Plan  #: with hosts and ports filled in
    brought: Brought
