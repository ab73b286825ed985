"""The pod of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, cast

from anubis.adapters.engine.kubernetes import naming
from anubis.adapters.engine.kubernetes.manifests import (
    containers,
    hosting,
    merging,
    resources,
    volumes,
)
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting
from anubis.adapters.engine.kubernetes.manifests.template import Template
from anubis.domain.plan import Placement, Toleration, Unit

NONE: Final[Mapping[str, str]] = MappingProxyType({})

_ZONE: Final = "topology.kubernetes.io/zone"


def labels(setting: Setting, unit: str = "") -> dict[str, str]:
    """What something of the run bears: what users say, and on top of it what we say."""
    return {**naming.given_labels(setting.plan), **setting.names.labels(unit)}


def remarks(setting: Setting, more: Mapping[str, str] = NONE) -> Manifest:
    """What it says besides, if anything."""
    said = {**more, **naming.given_annotations(setting.plan)}
    return {"annotations": said} if said else {}


def template(setting: Setting, wanted: Template) -> Manifest:
    """``metadata`` and ``spec`` of the pods of a template."""
    unit = wanted.unit
    borne = labels(setting, wanted.label)
    if unit.placement.joins_own:
        borne[naming.BESIDE] = setting.names.run_id
    whole: Manifest = {
        "metadata": {"labels": borne, **remarks(setting, unit.placement.annotations)},
        "spec": _spec(setting, wanted),
    }
    laid = merging.merged(whole, setting.site.overlay)
    return merging.merged(laid, {"metadata": {"labels": borne}})


def _spec(setting: Setting, wanted: Template) -> Manifest:
    unit = wanted.unit
    return {
        "restartPolicy": "Never",
        **hosting.naming(setting, unit.name),
        **_placed(setting, unit),
        **_identity(unit.placement),
        "enableServiceLinks": False,
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": containers.whole_seconds(setting.site.drain),
        "initContainers": [
            *containers.fetch(setting, wanted),
            containers.recorder(setting, wanted),
        ],
        "containers": [containers.benchmark(setting, wanted)],
        "volumes": list(volumes.volumes(setting, unit)),
    }


def _placed(setting: Setting, unit: Unit) -> Manifest:
    """On which machines it may run."""
    placement = unit.placement
    selector = dict(placement.node_selector)
    if placement.instance_type:
        selector["node.kubernetes.io/instance-type"] = placement.instance_type
    if placement.zone:
        selector[_ZONE] = placement.zone
    tolerations = [_toleration(one) for one in placement.tolerations]
    if unit.resources.gpus:
        tolerations.append({"key": resources.GPU, "operator": "Exists"})
    found: Mapping[str, object] = {
        "nodeSelector": selector,
        "tolerations": tolerations,
        "affinity": {
            **(_alone(setting, placement) if placement.exclusive else {}),
            **(_together(setting) if len(setting.plan.units) > 1 else {}),
        },
    }
    return {name: value for name, value in found.items() if value}


def _toleration(one: Toleration) -> Manifest:
    fields = {"key": one.key, "value": one.value, "effect": str(one.effect)}
    return {"operator": str(one.operator), **{name: text for name, text in fields.items() if text}}


def _alone(setting: Setting, placement: Placement) -> Manifest:
    """No other benchmark on the same machine, of whatever installation; nor another program of the
    same run, unless one of both does little.

    Always one term: when a pod leaves, schedulers only look again at those all of whose terms it
    met, and at others after five minutes.
    """
    others: Manifest = {"matchLabels": {naming.COMPONENT: naming.BENCHMARK}}
    if any(unit.placement.joins_own for unit in setting.plan.units):
        key = naming.RUN if placement.joins_own else naming.BESIDE
        own = {"key": key, "operator": "NotIn", "values": [setting.names.run_id]}
        others["matchExpressions"] = [own]
    term = {
        "labelSelector": others,
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _together(setting: Setting) -> Manifest:
    """Programs that talk to each other in one zone, if it has room: schedulers would rather spread
    what one Service finds. A wish and no condition, for machines of one's own have no zones.
    """
    term = {
        "labelSelector": {"matchLabels": {naming.RUN: setting.names.run_id}},
        "topologyKey": _ZONE,
    }
    wish = {"weight": 100, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def _identity(placement: Placement) -> Manifest:
    """As whom it runs. Who names no account gets no key to the cluster."""
    fields: Mapping[str, object] = {
        "serviceAccountName": placement.service_account,
        "imagePullSecrets": [{"name": name} for name in placement.pull_secrets],
        "priorityClassName": placement.priority_class,
        "runtimeClassName": placement.runtime_class,
    }
    said = {name: value for name, value in fields.items() if value}
    return cast(
        "Manifest", {"automountServiceAccountToken": bool(placement.service_account), **said}
    )
