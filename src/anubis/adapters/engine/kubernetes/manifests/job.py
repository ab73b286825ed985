"""Jobs: one for a unit, or one for several that differ only in their number.

Nothing is tried again: a benchmark that fails must not become another number.
"""

from __future__ import annotations

from datetime import timedelta

from anubis.adapters.engine.kubernetes.manifests import containers, pod
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting
from anubis.adapters.engine.kubernetes.manifests.template import Template

_SLACK = timedelta(hours=1)


def single(setting: Setting, template: Template) -> Manifest:
    """The Job of one unit."""
    spec: Manifest = {"completions": 1, "parallelism": 1, "backoffLimit": 0}
    return _job(setting, template, spec)


def indexed(setting: Setting, template: Template, number: int) -> Manifest:
    """The Job of several units. Each fails by itself: the end of one does not end the others."""
    spec: Manifest = {
        "completionMode": "Indexed",
        "completions": number,
        "parallelism": number,
        "backoffLimitPerIndex": 0,
    }
    return _job(setting, template, spec)


def _job(setting: Setting, template: Template, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": setting.names.job(template.label),
            "namespace": setting.names.namespace,
            "labels": pod.labels(setting, template.label),
            **pod.remarks(setting),
        },
        "spec": {
            **spec,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": deadline(setting),
            "ttlSecondsAfterFinished": containers.whole_seconds(setting.site.ttl),
            "template": pod.template(setting, template),
        },
    }


def deadline(setting: Setting) -> int:
    """After how many seconds the cluster gives up by itself. Nobody relies on it: it ends what we
    cannot end any more, and takes what was recorded with it.
    """
    limits = setting.plan.limits
    longest = 2 * containers.waits(limits) + limits.running + limits.grace
    return containers.whole_seconds(longest + setting.site.drain + _SLACK)
