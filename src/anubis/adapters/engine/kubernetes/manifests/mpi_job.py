"""An MPIJob: launcher and workers of one run, for clusters that have the MPI operator.

The operator makes the Service and names the hosts; files, keys and settings of ssh are our own, so
that ``mpirun`` finds the same as with any other engine. It adds variables behind ours and thereby
decides: the list of hosts, which says the same as ours, and the arguments of ssh.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final

from anubis.adapters.engine.kubernetes.manifests import containers, hosting, job, pod
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Setting
from anubis.adapters.engine.kubernetes.manifests.template import Template

API_VERSION: Final = "kubeflow.org/v2beta1"

_AGENT: Final = "OMPI_MCA_plm_rsh_agent"
_ARGUMENTS: Final = "OMPI_MCA_plm_rsh_args"
"""The operator sets it to something else."""

_KEYS_OF_OPERATOR: Final = "/etc/mpi-ssh"
"""Where they hide nothing: its own choice is the home of root, which our workers write to."""


def mpi_job(setting: Setting, launcher: Template, worker: Template, workers: int) -> Manifest:
    """All units of the run."""
    return {
        "apiVersion": API_VERSION,
        "kind": "MPIJob",
        "metadata": {
            "name": setting.names.mpi_job,
            "namespace": setting.names.namespace,
            "labels": pod.labels(setting),
            **pod.remarks(setting),
        },
        "spec": {
            "slotsPerWorker": _slots(setting),
            "sshAuthMountPath": _KEYS_OF_OPERATOR,
            "mpiImplementation": "OpenMPI",
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {
                "cleanPodPolicy": "None",
                "backoffLimit": 0,
                "activeDeadlineSeconds": job.deadline(setting),
                "ttlSecondsAfterFinished": containers.whole_seconds(setting.site.ttl),
            },
            "mpiReplicaSpecs": {
                "Launcher": _replicas(setting, _with_agent(launcher), 1),
                "Worker": _replicas(setting, worker, workers),
            },
        },
    }


def _replicas(setting: Setting, template: Template, number: int) -> Manifest:
    made = pod.template(setting, template)
    spec = made["spec"]
    assert isinstance(spec, dict)
    # The operator says these itself, and warns about a policy in two places.
    named = {"hostname", "subdomain", "restartPolicy"}
    kept = {name: value for name, value in spec.items() if name not in named}
    return {"replicas": number, "restartPolicy": "Never", "template": {**made, "spec": kept}}


def _with_agent(launcher: Template) -> Template:
    """The arguments of ssh as part of its name, which is the same to Open MPI."""
    environment = dict(launcher.unit.environment)
    if arguments := environment.pop(_ARGUMENTS, ""):
        environment[_AGENT] = f"{environment.get(_AGENT, 'ssh')} {arguments}"
    unit = dataclasses.replace(launcher.unit, environment=environment)
    return dataclasses.replace(launcher, unit=unit)


def _slots(setting: Setting) -> int:
    """Ranks on each worker, as our own list of hosts has it."""
    found = re.search(r"slots=(\d+)", setting.plan.files.get(hosting.HOSTFILE, ""))
    return int(found[1]) if found else 1
