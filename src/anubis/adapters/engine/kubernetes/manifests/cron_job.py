"""A CronJob that has a service run a descriptor again and again.

Our own scheduler needs none. It is for those who want all that recurs to be in their cluster. Its
pod is a client: it hands the descriptor in, waits for the end of the run, and ends as the run did;
so what the cluster counts as running is what runs.

Code goes along as the archive that a service would be sent anyway. The pod hands it on unopened:
who unpacks it is where the run is.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from anubis.adapters.engine.kubernetes import naming
from anubis.adapters.engine.kubernetes.manifests import containers, texts
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.domain.schedule import CRON_FORMS, CatchUp, Overlap

LONGEST: Final = 52
"""The cluster adds eleven signs to the name of a CronJob for each of its Jobs."""

MOST: Final = 1024**2
"""Bytes that a ConfigMap holds."""

TOKEN_KEY: Final = "token"  # noqa: S105 (the key under which a Secret has it)
FILE: Final = "descriptor.toml"
FOLDER: Final = "/benchmarks"
HOME: Final = "/var/lib/anubis"
USER: Final = 10001  #: of our image

_POLICIES: Final = {
    Overlap.SKIP: "Forbid",
    Overlap.QUEUE: "Allow",
    Overlap.CANCEL_PREVIOUS: "Replace",
}
_LATEST: Final = timedelta(seconds=60)
"""How late a firing may be where missed ones are not made up for: as with our own scheduler."""

_CANCELING: Final = timedelta(seconds=60)
"""For a service to stop a run, beside the time that its program gets."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """What goes along with a descriptor."""

    name: str  #: of the archive, by which it is known for what it is
    content: bytes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """What shall run again and again, and who runs it."""

    benchmark: str  #: its name
    content: str  #: the descriptor
    code: Code | None = None
    cron: str
    time_zone: str
    overlap: Overlap
    catch_up: CatchUp
    grace: timedelta  #: that the program gets to end
    endpoint: str  #: of the service
    token_secret: str = ""  #: a Secret that holds a token; empty: none is needed
    image: str = ""  #: our own
    namespace: str = ""  #: empty: whichever ``kubectl`` chooses


def objects(export: Export) -> tuple[Manifest, Manifest]:
    """A ConfigMap with the descriptor and its code, and the CronJob."""
    return _config_map(export), _cron_job(export)


def room(content: bytes) -> int:
    """For how many bytes of code there is room beside a descriptor."""
    return max(0, MOST - len(content))


def obstacles(export: Export) -> Iterator[str]:
    """What a CronJob cannot do, each with the field of the descriptor."""
    try:
        cluster_cron(export.cron)
    except ValueError as error:
        yield f"info.scheduling: found {export.cron!r}, expected {error}"
    if export.catch_up is CatchUp.ALL:
        yield (
            "schedule.catch_up: found 'all', expected 'last' or 'none': a CronJob makes up for one "
            "firing at most"
        )


def cluster_cron(cron: str) -> str:
    """The five fields as Kubernetes reads them. Raises ValueError with what was expected."""
    fields = CRON_FORMS.get(cron, cron).split()
    if re.search("[LW#]", re.sub("[A-Za-z]{3}", "", " ".join(fields[2:5:2])).upper()):
        raise ValueError("fields without L, W and #, which CronJobs do not know")
    return " ".join([*fields[:4], _weekdays(fields[4])])


def _weekdays(field: str) -> str:
    """Sunday is 0 to Kubernetes, and never 7."""
    days = [_weekday(day) for day in field.split(",")]
    return ",".join(dict.fromkeys(part for day in days for part in day))


def _weekday(day: str) -> tuple[str, ...]:
    span, slash, step = day.partition("/")
    if span == "7":
        return (f"0{slash}{step}",)
    if not span.endswith("-7"):
        return (day,)
    if slash:
        raise ValueError("days of the week that do not end with 7 and have a step")
    start = span.removesuffix("-7")
    return (start, "0") if start == "6" else (f"{start}-6", "0")


def _name(export: Export) -> str:
    legal = re.sub("[^a-z0-9]+", "-", export.benchmark.lower()).strip("-")
    return f"anubis-{legal}"[:LONGEST].rstrip("-")


def _metadata(export: Export) -> Manifest:
    placed = {"namespace": export.namespace} if export.namespace else {}
    return {"name": _name(export), **placed, "labels": _labels(export)}


def _labels(export: Export) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "anubis",
        "app.kubernetes.io/managed-by": "anubis",
        naming.COMPONENT: "schedule",
        "created-by": "anubis",
        "task_name": naming.label_value(export.benchmark),
    }


def _config_map(export: Export) -> Manifest:
    code: Manifest = {}
    if export.code:
        archive = base64.b64encode(export.code.content).decode()
        code = {"binaryData": {export.code.name: archive}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(export),
        "data": {FILE: export.content},
        **code,
    }


def _cron_job(export: Export) -> Manifest:
    late: Manifest = {}
    if export.catch_up is CatchUp.NONE:
        late = {"startingDeadlineSeconds": containers.whole_seconds(_LATEST)}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": _metadata(export),
        "spec": {
            "schedule": cluster_cron(export.cron),
            "timeZone": export.time_zone,
            "concurrencyPolicy": _POLICIES[export.overlap],
            **late,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {
                "metadata": {"labels": _labels(export)},
                "spec": {
                    "backoffLimit": 0,
                    "template": {"metadata": {"labels": _labels(export)}, "spec": _pod(export)},
                },
            },
        },
    }


def _pod(export: Export) -> Manifest:
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": containers.whole_seconds(export.grace + _CANCELING),
        "securityContext": {
            "runAsUser": USER,
            "runAsNonRoot": True,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(export)],
        "volumes": [
            {"name": "descriptor", "configMap": {"name": _name(export)}},
            {"name": "home", "emptyDir": {}},
        ],
    }


def _container(export: Export) -> Manifest:
    folder = f"{FOLDER}/{naming.label_value(export.benchmark) or 'benchmark'}"
    code = ["--script", f"{folder}/{export.code.name}"] if export.code else []
    return {
        "name": "submit",
        "image": export.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["anubis", "run", f"{folder}/{FILE}", *code],
        "env": list(_environment(export)),
        "volumeMounts": [
            {"name": "descriptor", "mountPath": folder, "readOnly": True},
            {"name": "home", "mountPath": HOME},
        ],
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _environment(export: Export) -> Iterator[Manifest]:
    yield {"name": "ANUBIS_HOME", "value": HOME}
    yield {"name": "ANUBIS_ENDPOINT", "value": texts.verbatim(export.endpoint)}
    if export.token_secret:
        reference = {"name": export.token_secret, "key": TOKEN_KEY}
        yield {"name": "ANUBIS_TOKEN", "valueFrom": {"secretKeyRef": reference}}
