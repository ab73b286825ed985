"""The test cluster is a real one: what tests of the product rely on."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest
from tests import real_parts
from tests.cluster import calling, control, layout

pytestmark = pytest.mark.cluster


def kubectl(*words: str, given: str = "") -> str:
    program = calling.kubectl_program(layout.layout())
    return calling.call(
        program, f"--kubeconfig={control.kubeconfig()}", *words, given=given, seconds=180
    )


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"house-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def _job(script: str) -> str:
    image = real_parts.busybox()
    if control.is_here():
        control.load(image)
    container = {"name": "main", "image": image, "command": ["sh", "-c", script]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return json.dumps(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "one"},
            "spec": {"backoffLimit": 0, "template": template},
        }
    )


def _run(namespace: str, script: str) -> str:
    kubectl("create", "--namespace", namespace, "-f", "-", given=_job(script))
    return _output(namespace)


def _output(namespace: str) -> str:
    words = ("--for=condition=complete", "--timeout=120s", "job/one")
    kubectl("wait", "--namespace", namespace, *words)
    return kubectl("logs", "--namespace", namespace, "job/one")


def test_a_job_runs_and_finds_services_by_their_names(namespace: str) -> None:
    said = _run(namespace, "nslookup kubernetes.default.svc.cluster.local")

    assert "Address" in said


def test_the_node_has_the_labels_that_placement_is_tested_with() -> None:
    node = json.loads(kubectl("get", "nodes", "--selector=!type", "-o", "json"))["items"][0]

    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "anubis.test"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-a"
    assert int(node["status"]["allocatable"]["pods"]) >= 200


@pytest.mark.cluster(alone=True)
@pytest.mark.parametrize("part", ["kubelet", "kube-apiserver", "kube-controller-manager"])
def test_a_part_can_be_killed_while_a_job_runs(namespace: str, part: str) -> None:
    script = "echo begun; sleep 3; echo done"
    kubectl("create", "--namespace", namespace, "-f", "-", given=_job(script))

    with control.away(part):
        assert not control.is_up(part)

    assert control.is_up(part)
    assert _output(namespace) == "begun\ndone\n"


@pytest.mark.cluster(alone=True)
def test_a_part_that_a_killed_test_left_dead_is_started_again() -> None:
    control.kill("kube-scheduler")

    control.heal()

    assert control.is_up("kube-scheduler")


@pytest.mark.cluster(alone=True)
def test_the_mpi_operator_can_be_turned_on_and_off() -> None:
    def kinds() -> str:
        return kubectl("api-resources", "--api-group=kubeflow.org", "-o", "name", "--cached=false")

    before = kinds()
    with control.mpi_operator():
        assert kinds() == "mpijobs.kubeflow.org\n"

    assert kinds() == before


@pytest.mark.cluster(alone=True)
def test_a_pod_can_be_placed_on_a_node_that_exists_only_on_paper(namespace: str) -> None:
    name = f"paper-{secrets.token_hex(4)}"
    resources = {"nvidia.com/gpu": "8"}
    with control.simulated_nodes(name, labels={"paper": "yes"}, resources=resources):
        job = json.loads(_job("true"))
        spec = job["spec"]["template"]["spec"]
        spec["nodeSelector"] = {"paper": "yes"}
        spec["tolerations"] = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
        spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
        kubectl("create", "--namespace", namespace, "-f", "-", given=json.dumps(job))
        kubectl("wait", "--namespace", namespace, "--for=condition=complete", "job/one")

        where = "jsonpath={.items[0].spec.nodeName}"
        assert kubectl("get", "pods", "--namespace", namespace, "-o", where) == name
