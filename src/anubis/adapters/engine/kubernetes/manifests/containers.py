"""The containers of a pod: what brings, what records, and the benchmark itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from anubis.adapters.engine.kubernetes.manifests import carrying, hosting, resources, texts, volumes
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting
from anubis.adapters.engine.kubernetes.manifests.template import Template
from anubis.domain import dataset
from anubis.domain import plan as plans
from anubis.domain.plan import Limits, Probe, ProbeKind, Unit

BENCHMARK: Final = "benchmark"
FETCH: Final = "fetch"
RECORDER: Final = "recorder"

EMIT_WAIT_SECONDS: Final = 60
PINS: Final = "/var/lib/anubis-pins"
"""The part of the data's cache that says what this run needs; see ``bootstrap.podding``."""

_OURS: Final = {"runAsUser": 0, "runAsNonRoot": False, "allowPrivilegeEscalation": False}
"""What is read and signalled belongs to whoever the benchmark runs as; what is fetched is shared by
all of them."""


def benchmark(setting: Setting, template: Template) -> Manifest:
    """The unit's program."""
    unit = template.unit
    container: Manifest = {
        "name": BENCHMARK,
        "image": unit.image,
        "imagePullPolicy": setting.site.pull_policy,
        "env": _environment(setting, template),
        "volumeMounts": list(volumes.mounts(setting, unit)),
    }
    container |= _words(unit)
    if amounts := resources.of(unit):
        container["resources"] = amounts
    if unit.ports:
        container["ports"] = [{"containerPort": port} for port in dict.fromkeys(unit.ports)]
    if unit.readiness:
        container["readinessProbe"] = probe(unit.readiness)
    if unit.resources.privileged:
        container["securityContext"] = {"privileged": True}
    return container


def _words(unit: Unit) -> Manifest:
    words: Manifest = {}
    if unit.command:
        words["command"] = [texts.verbatim(word) for word in unit.command]
    if unit.arguments:
        words["args"] = [texts.verbatim(word) for word in unit.arguments]
    if unit.directory:
        words["workingDir"] = unit.directory
    return words


def _environment(setting: Setting, template: Template) -> list[Manifest]:
    """What ``emit()`` needs, then the descriptor's; never that of whoever submitted."""
    values = {
        "BENCHMARK_AI": "fifo",
        "BENCHMARK_AI_FIFO_FILEPATH": f"{volumes.EMIT}/fifo",
        "BENCHMARK_AI_FIFO_MAX_WAIT_TIME": str(EMIT_WAIT_SECONDS),
        **{name: texts.verbatim(value) for name, value in template.unit.environment.items()},
        "ANUBIS_RUN_ID": setting.names.run_id,
        "ANUBIS_UNIT": template.name,
    }
    index = template.index
    taken = {entry["name"] for entry in index}
    told: list[Manifest] = [
        {"name": name, "value": value} for name, value in values.items() if name not in taken
    ]
    return [*index, *told]


def probe(asked: Probe) -> Manifest:
    """A probe in the words of Kubernetes, which counts in whole seconds."""
    question: Manifest = {"tcpSocket": {"port": asked.port}}
    if asked.kind is not ProbeKind.TCP:
        scheme = asked.kind.value.upper()
        question = {"httpGet": {"path": asked.path or "/", "port": asked.port, "scheme": scheme}}
    return {
        **question,
        "initialDelaySeconds": whole_seconds(asked.initial_delay),
        "periodSeconds": max(1, whole_seconds(asked.period)),
        "timeoutSeconds": max(1, whole_seconds(asked.timeout)),
        "successThreshold": asked.success_threshold,
        "failureThreshold": asked.failure_threshold,
    }


def whole_seconds(span: timedelta) -> int:
    """At least this long."""
    return math.ceil(span.total_seconds())


def fetch(setting: Setting, template: Template) -> Iterator[Manifest]:
    """What has everything in its place before the program starts; nothing if there is nothing."""
    unit = template.unit
    task = _fetching(setting, unit)
    if not (task["fetches"] or task["scripts"] or task["hosts"]):
        return
    container: Manifest = {
        "name": FETCH,
        "image": setting.site.image,
        "imagePullPolicy": setting.site.pull_policy,
        "command": ["python3", "-m", "anubis.entrypoints.pod", "fetch"],
        "env": [{"name": "ANUBIS_FETCH", **_task(setting, unit)}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": dict(_OURS),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if mounts := list(_fetch_mounts(setting, unit)):
        container["volumeMounts"] = mounts
    if setting.site.fetch_secret and task["fetches"]:
        container["envFrom"] = [{"secretRef": {"name": setting.site.fetch_secret}}]
    yield container


def _task(setting: Setting, unit: Unit) -> Manifest:
    """What it shall do: where everybody sees it, or in the Secret."""
    task = json.dumps(_fetching(setting, unit))
    if secret_task(setting, unit) is None:
        return {"value": texts.verbatim(task)}
    reference = {"name": setting.names.secret, "key": task_key(unit)}
    return {"valueFrom": {"secretKeyRef": reference}}


def secret_task(setting: Setting, unit: Unit) -> str | None:
    """What must not be seen by all who may look at pods: addresses with a query may be signed."""
    uris = [setting.plan.fetches[number].uri for number in volumes.fetched(unit)]
    if all(dataset.shown(uri) == uri for uri in uris):
        return None
    return json.dumps(_fetching(setting, unit))


def task_key(unit: Unit) -> str:
    """Under which the Secret of the run has it."""
    return f"{FETCH}.{unit.name}"


def _fetching(setting: Setting, unit: Unit) -> Mapping[str, object]:
    parts = carrying.parts(setting.brought)
    hosts = hosting.hosts(setting)
    return {
        "run": setting.names.run_id,
        "datasets": volumes.DATASETS,
        "fetches": [_fetched(setting, number, parts) for number in volumes.fetched(unit)],
        "scripts": {unit.script: parts.get(unit.script, [])} if unit.script else {},
        "scripts_target": volumes.SCRIPTS,
        "hosts": [hosts[name] for name in unit.after],
        "seconds": setting.plan.limits.fetching.total_seconds(),
    }


def _fetched(setting: Setting, number: int, parts: Mapping[str, list[str]]) -> Manifest:
    wanted = volumes.reference(setting, number)
    entry: Manifest = {
        "uri": wanted.uri,
        "checksum": str(wanted.checksum or ""),
        "unpack": wanted.unpack,
        "link": wanted.key,
    }
    if (carried := setting.brought.data.get(number)) is not None:
        entry |= {"parts": parts[wanted.uri], "form": "tar" if carried.is_folder else "file"}
    return entry


def _fetch_mounts(setting: Setting, unit: Unit) -> Iterator[Manifest]:
    numbers = volumes.fetched(unit)
    carries = any(number in setting.brought.data for number in numbers)
    if numbers:
        yield {"name": "datasets", "mountPath": volumes.DATASETS}
    if unit.script:
        yield {"name": "scripts", "mountPath": volumes.SCRIPTS}
    if unit.script or carries:
        yield {"name": "code", "mountPath": carrying.FOLDER, "readOnly": True}
    if carries:
        yield {"name": "brought", "mountPath": carrying.PLACE}


_IS_READY: Final = ("sh", "-c", f"until [ -p {volumes.EMIT}/fifo ]; do sleep 0.05; done")
"""The program must not begin before there is somebody who listens, and before the pipe that it
emits to is there: whoever writes to a path that is not there makes a file."""


def recorder(setting: Setting, template: Template) -> Manifest:
    """What keeps all that the program writes and tells, whether or not anybody listens."""
    fields = {"POD_NAMESPACE": "namespace", "POD_NAME": "name", "POD_UID": "uid"}
    own: list[Manifest] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
        for name, field in fields.items()
    ]
    task = _told(_recording(setting, template.unit))
    if template.index_label:
        # Quoted names cannot be in the way: nothing but the unit's own field is spelled like this.
        task = task.replace(f'"unit": "{template.unit.name}"', f'"unit": "{template.name}"', 1)
    return {
        "name": RECORDER,
        "image": setting.site.image,
        "imagePullPolicy": setting.site.pull_policy,
        "restartPolicy": "Always",
        # The signal waits until it is there to hear it: a short program may end before.
        "command": [
            *("env", "--block-signal=TERM"),
            *("python3", "-m", "anubis.adapters.engine.kubernetes.recorder"),
        ],
        "env": [*own, *template.index, {"name": "ANUBIS_RECORDER", "value": task}],
        "volumeMounts": [
            {"name": "record", "mountPath": volumes.RECORD},
            {"name": "emit", "mountPath": volumes.EMIT},
            {
                "name": "output",
                "mountPath": volumes.OUTPUT,
                "readOnly": True,
                "subPathExpr": "$(POD_NAMESPACE)_$(POD_NAME)_$(POD_UID)",
            },
            *_pins(setting, template.unit),
        ],
        "lifecycle": {"postStart": {"exec": {"command": list(_IS_READY)}}},
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": dict(_OURS),
    }


def _pins(setting: Setting, unit: Unit) -> Iterator[Manifest]:
    """Where it says, as long as it lives, that the run needs its data. Not where others say so: a
    program that is root reaches all that its recorder reaches, through ``/proc``.
    """
    if volumes.fetched(unit):
        own = f"pins/{setting.names.run_id}"
        yield {"name": "datasets", "mountPath": PINS, "subPath": own}


def _recording(setting: Setting, unit: Unit) -> Mapping[str, object]:
    limits = setting.plan.limits
    written = json.loads(plans.to_json(setting.plan))["units"]
    fields = written[[one.name for one in setting.plan.units].index(unit.name)]
    return {
        "unit": unit.name,
        "running_seconds": running(setting, unit).total_seconds(),
        "grace_seconds": limits.grace.total_seconds(),
        "output_bytes": limits.output_bytes,
        "drain_seconds": setting.site.drain.total_seconds(),
        "readiness": fields.get("readiness"),
        "liveness": fields.get("liveness"),
        **({"pins": PINS} if volumes.fetched(unit) else {}),
    }


def running(setting: Setting, unit: Unit) -> timedelta:
    """How long a program may run if nobody stops it. Those that do not decide also wait for the
    one that does.
    """
    limits = setting.plan.limits
    return limits.running if unit.name == setting.plan.deciding else limits.running + waits(limits)


def waits(limits: Limits) -> timedelta:
    """How long a unit may take at most until its program runs and is ready."""
    before = limits.capacity + limits.pulling + limits.fetching
    return before + limits.starting + limits.readiness


def _told(task: Mapping[str, object]) -> str:
    return texts.verbatim(json.dumps(task))
