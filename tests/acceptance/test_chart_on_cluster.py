"""Anubis, installed by its chart on a real cluster: runs, replicas that die, rights."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import docker_images, helm_charts, kubectl, own_image, real_parts
from tests.cluster import control
from tests.kubectl import Space

from anubis.adapters.engine.kubernetes import rights

from .serving import ANUBIS, BARE, PATIENCE

pytestmark = [pytest.mark.acceptance, pytest.mark.cluster, pytest.mark.timeout(600)]

NAME = "bench-anubis"
IMAGE = os.environ.get("ANUBIS_TEST_IMAGE", "")
NEEDS_KUBERNETES = "import kubernetes_asyncio, yaml"

SINGLE = """\
spec_version = "0.1.0"
[info]
description = "For a service on a cluster"
[env]
docker_image = "anubis-test/busybox:latest"
[ml]
benchmark_code = "sh -c 'for i in $(seq {seconds}); do echo loss=$i; sleep 1; done'"
[[output.metrics]]
name = "loss"
units = "nats"
pattern = 'loss=([0-9]+)'
"""

PAIR = """\
spec_version = "0.1.0"
[info]
description = "A server and its client"
[hardware]
strategy = "inference"
[server.env]
docker_image = "anubis-test/busybox:latest"
ports = [8080]
start_command = "sh -c 'echo hello > /tmp/index.html && httpd -f -p 8080 -h /tmp'"
[server.env.readiness_probe]
path = "/index.html"
initial_delay_seconds = 0
period_seconds = 1
[env]
docker_image = "anubis-test/busybox:latest"
[ml]
benchmark_code = "sh -c 'wget -q -O - http://$INFERENCE_SERVER_HOST:$INFERENCE_SERVER_PORT/index.html'"
"""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """A release with two replicas, and somebody who uses it."""

    space: Space
    folder: Path
    environment: dict[str, str]

    def anubis(self, *words: str) -> str:
        """What a command says; it must succeed."""
        done = subprocess.run(
            [ANUBIS, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def submit(self, descriptor: str) -> str:
        (self.folder / "bench.toml").write_text(real_parts.with_images(descriptor))
        return self.anubis("submit", "bench.toml").strip()

    def state(self, run: str) -> str:
        return str(json.loads(self.anubis("status", run, "--json"))["run"]["state"])

    def wait_for(self, run: str, state: str) -> None:
        kubectl.until(lambda: self.state(run) == state, f"{run} is {self.state(run)}, not {state}")

    def leader(self) -> str:
        """The pod of the replica that acts."""
        holder = self.space.get("lease", NAME)["spec"]["holderIdentity"]
        return str(holder).partition("@")[0]

    def pods(self) -> list[str]:
        words = ("pods", "--selector", "app.kubernetes.io/component=service")
        return [one["metadata"]["name"] for one in self.space.get(*words)["items"]]

    def has_both_ready(self) -> bool:
        status = self.space.get("deployment", NAME)["status"]
        return bool(status.get("readyReplicas") == 2)


def _image() -> str:
    """Our image in the cluster, with all that the service needs there."""
    real_parts.need_docker()
    try:
        name = IMAGE or own_image.loaded()
    except docker_images.Unavailable as error:
        real_parts.need(False, f"our own image cannot be made: {error}")
        raise
    words = ["docker", "run", "--rm", "--entrypoint", "python3", name, "-c", NEEDS_KUBERNETES]
    done = subprocess.run(words, capture_output=True, text=True)
    control.load(real_parts.busybox())
    real_parts.need(not done.returncode, f"{name} has no library for Kubernetes: {done.stderr}")
    return name


def _volume(space: Space, folder: Path) -> list[str]:
    """Somewhere to keep the home: a folder of this machine, if the cluster is on it."""
    if not control.is_here():  # somebody's own cluster: its default class
        return []
    folder.mkdir()
    folder.chmod(0o777)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": space.name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": space.name, "name": NAME},
        },
    }
    space.ask("create", "--filename", "-", stdin=json.dumps(volume))
    return [
        "--set-string",
        "persistence.storageClass=",
        "--set",
        f"persistence.volumeName={space.name}",
    ]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("chart")
    repository, _, tag = _image().rpartition(":")
    with kubectl.space("chart") as space:
        try:
            chosen = {
                "image.repository": repository,
                "image.tag": tag,
                "persistence.size": "1Gi",
                "persistence.keep": "false",
                "replicas": "2",
                "benchmarks.datasets": "none",
                "benchmarks.drainSeconds": "60",
                "resources.requests.cpu": "20m",
            }
            options = [word for one in chosen.items() for word in ("--set", "=".join(one))]
            options += _volume(space, folder / "volume")
            told = _helm(space, "install", "--wait", "--timeout", "120s", *options)
            assert "anubis token create" in told  # what to do first
            yield Installed(space=space, folder=folder, environment=_user(space, folder))
        finally:
            space.kubectl("delete", "persistentvolume", space.name, "--wait=false")


def _helm(space: Space, verb: str, *options: str) -> str:
    where = ("--kubeconfig", str(space.kubeconfig), "--namespace", space.name)
    told = helm_charts.helm(verb, "bench", str(helm_charts.CHART), *where, *options)
    seen = space.kubectl("logs", f"deployment/{NAME}").stdout if told.returncode else ""
    assert told.returncode == 0, told.stderr + seen
    return told.stdout


def _user(space: Space, folder: Path) -> dict[str, str]:
    words = ("exec", f"deployment/{NAME}", "--", "anubis", "token", "create", "ada", "--role=admin")
    address = space.get("service", NAME)["spec"]["clusterIP"]
    return {
        **BARE,
        "ANUBIS_HOME": str(folder / "home"),
        "ANUBIS_TOKEN": space.ask(*words).strip(),
        "ANUBIS_ENDPOINT": f"http://{address}",
    }


def test_the_api_server_takes_every_object_as_it_is(installed: Installed) -> None:
    values = str(Path(__file__).parents[1] / "unit/chart/values/replicas.yaml")
    made = helm_charts.rendered("--values", values, "--set", "fullnameOverride=other")
    inside = [
        {**one, "metadata": {**one["metadata"], "namespace": installed.space.name}} for one in made
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": inside})

    installed.space.ask(
        "create", "--dry-run=server", "--validate=strict", "--filename=-", stdin=text
    )


def test_a_run_goes_through_the_cluster_and_leaves_nothing(installed: Installed) -> None:
    (installed.folder / "bench.toml").write_text(real_parts.with_images(SINGLE.format(seconds=2)))

    installed.anubis("run", "bench.toml")

    assert installed.anubis("logs", "last").split() == ["loss=1", "loss=2"]
    kubectl.until(lambda: not _left(installed.space), "something of the run is left")


def test_a_server_and_its_client_find_each_other(installed: Installed) -> None:
    run = installed.submit(PAIR)

    installed.wait_for(run, "SUCCEEDED")
    assert "hello" in installed.anubis("logs", run)


def test_a_canceled_run_is_gone_from_the_cluster(installed: Installed) -> None:
    run = installed.submit(SINGLE.format(seconds=600))
    installed.wait_for(run, "RUNNING")

    installed.anubis("cancel", run)

    installed.wait_for(run, "CANCELED")
    kubectl.until(lambda: not _left(installed.space), "something of the run is left")


def test_when_the_leader_is_killed_in_its_pod_the_run_goes_on(installed: Installed) -> None:
    run = installed.submit(SINGLE.format(seconds=8))
    installed.wait_for(run, "RUNNING")
    kill = "kill -9 $(cat /var/lib/anubis/home/runtime.pid)"

    installed.space.ask("exec", installed.leader(), "--", "sh", "-c", kill)

    kubectl.until(lambda: _answers(installed, run) == "SUCCEEDED", "it was not taken up")
    assert installed.anubis("logs", run).split() == [f"loss={n}" for n in range(1, 9)]
    kubectl.until(installed.has_both_ready, "the replicas do not come back")


def test_when_the_pod_of_the_leader_is_gone_the_other_takes_over(installed: Installed) -> None:
    kubectl.until(installed.has_both_ready, "the replicas are not there")
    run = installed.submit(SINGLE.format(seconds=8))
    installed.wait_for(run, "RUNNING")
    before = installed.leader()

    installed.space.ask("delete", "pod", before, "--grace-period=0", "--force")

    kubectl.until(lambda: _answers(installed, run) == "SUCCEEDED", "it was not taken up")
    assert installed.anubis("logs", run).split() == [f"loss={n}" for n in range(1, 9)]
    assert installed.leader() != before


def test_whoever_has_the_account_of_the_service_can_do_no_more_than_it_needs(
    installed: Installed, tmp_path: Path
) -> None:
    account = installed.space.as_account(NAME, tmp_path)
    needed = {**rights.NEEDED, **rights.WITH_MPI}
    given = {
        f"{kind.plural}{f'.{kind.group}' if kind.group else ''}": part
        for (kind, part), verbs in needed.items()
        for _ in verbs
    }
    listed = account.ask("auth", "can-i", "--list", "--no-headers")

    assert {name for name in given if name.partition(".")[0] not in listed} == set()
    for verb, what in DENIED:
        assert account.kubectl("auth", "can-i", verb, *what.split()).returncode == 1, what


DENIED = [
    ("get", "secrets --namespace default"),
    ("list", "secrets --namespace kube-system"),
    ("get", "nodes"),
    ("list", "namespaces"),
    ("create", "pods"),
    ("patch", "pods"),
    ("get", "pods/log"),
    ("create", "pods/portforward"),
    ("create", "deployments"),
    ("patch", f"deployments/{NAME}"),
    ("get", "configmaps"),
    ("create", "roles"),
    ("create", "rolebindings"),
    ("escalate", "roles"),
    ("impersonate", "serviceaccounts"),
    ("create", "serviceaccounts/token"),
    ("update", "leases/another"),
    ("delete", f"leases/{NAME}"),
    ("delete", "persistentvolumeclaims"),
    ("create", "cronjobs"),
]


def test_the_account_of_benchmarks_can_do_nothing(installed: Installed, tmp_path: Path) -> None:
    account = installed.space.as_account(f"{NAME}-benchmark", tmp_path)

    for verb, what in (("list", "pods"), ("get", "secrets"), ("create", "jobs"), *DENIED):
        assert account.kubectl("auth", "can-i", verb, *what.split()).returncode == 1, what


def test_an_engine_finds_all_its_rights_and_names_the_one_that_is_missing(
    installed: Installed, tmp_path: Path
) -> None:
    account = installed.space.as_account(NAME, tmp_path)
    look = [sys.executable, "-m", "anubis", "doctor"]
    environment = {
        **BARE,
        "ANUBIS_HOME": str(tmp_path / "home"),
        "KUBECONFIG": str(account.kubeconfig),
    }

    def doctor() -> str:
        done = subprocess.run(
            look, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        return done.stdout + done.stderr

    assert installed.space.name in doctor()
    role: Any = installed.space.get("role", NAME)
    for rule in role["rules"]:
        rule["verbs"] = [
            verb for verb in rule["verbs"] if (verb, rule["resources"]) != ("watch", ["jobs"])
        ]
    installed.space.ask("replace", "--filename=-", stdin=json.dumps(role))
    try:
        assert "watch jobs" in doctor()
    finally:
        next(r for r in role["rules"] if r["resources"] == ["jobs"])["verbs"].append("watch")
        del role["metadata"]["resourceVersion"]
        installed.space.ask("replace", "--filename=-", stdin=json.dumps(role))


def _answers(installed: Installed, run: str) -> str:
    """The state of a run, or nothing while nobody leads."""
    words = [ANUBIS, "status", run, "--json"]
    done = subprocess.run(
        words, env=installed.environment, capture_output=True, text=True, timeout=180
    )
    return str(json.loads(done.stdout)["run"]["state"]) if done.returncode == 0 else ""


def _left(space: Space) -> list[str]:
    kinds = "pods,jobs,services,secrets"
    return [
        one["metadata"]["name"] for one in space.get(kinds, "--selector=anubis.dev/run")["items"]
    ]
