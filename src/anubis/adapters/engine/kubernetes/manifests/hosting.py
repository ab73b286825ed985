"""How the units of a run are reached: each has a name below the Service of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting
from anubis.adapters.engine.kubernetes.naming import Names
from anubis.domain import blanks
from anubis.domain.plan import Plan

WORKER: Final = "worker"
LAUNCHER: Final = "launcher"
HOSTFILE: Final = "hostfile"
_WORKER_NAME: Final = re.compile(rf"{WORKER}-\d+")


def needs_service(plan: Plan) -> bool:
    """Whether units must find each other."""
    return len(plan.units) > 1


def host_name(names: Names, plan: Plan, unit: str) -> str:
    """What a unit's pod calls itself. Those of an Indexed Job or an MPIJob have no choice, and the
    same name in both.
    """
    return names.job(unit) if plan.needs_keys and _WORKER_NAME.fullmatch(unit) else unit


def hosts(setting: Setting) -> Mapping[str, str]:
    """By unit, under which name others reach it."""
    return _hosts(setting.names, setting.plan)


def _hosts(names: Names, plan: Plan) -> Mapping[str, str]:
    return {
        unit.name: f"{host_name(names, plan, unit.name)}.{names.service}" for unit in plan.units
    }


def meanings(names: Names, plan: Plan) -> Mapping[str, str]:
    """What the blanks for hosts and ports stand for: every unit has all ports to itself."""
    found = {blanks.name(blanks.host(unit)): host for unit, host in _hosts(names, plan).items()}
    for unit in plan.units:
        found |= {blanks.name(blanks.port(unit.name, n)): str(n) for n in unit.ports}
    return found


def service(setting: Setting, labels: Mapping[str, str]) -> Manifest:
    """Gives pods names as soon as they have addresses: whoever asks for them may come early."""
    ports = dict.fromkeys(port for unit in setting.plan.units for port in unit.ports)
    spec: Manifest = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": dict(part.split("=") for part in setting.names.selector.split(",")),
    }
    if ports:
        spec["ports"] = [{"name": f"port-{port}", "port": port} for port in ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": setting.names.service,
            "namespace": setting.names.namespace,
            "labels": dict(labels),
        },
        "spec": spec,
    }


def naming(setting: Setting, unit: str) -> Manifest:
    """What a pod says about its own name, and where it looks for others': their bare names are
    enough, as they are in other engines.
    """
    if not needs_service(setting.plan):
        return {}
    names = setting.names
    search = f"{names.service}.{names.namespace}.svc.{setting.site.domain}"
    return {
        "hostname": host_name(names, setting.plan, unit),
        "subdomain": names.service,
        "dnsConfig": {"searches": [search]},
    }
