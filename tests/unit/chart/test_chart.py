"""The chart: what it renders is valid, locked down, and what the service understands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import helm_charts, kubernetes_schemas
from tests.helm_charts import CHART, NAMESPACE, helm, only, rendered

import anubis
from anubis.adapters.engine.kubernetes import rights
from anubis.settings import loading

VALUES = Path(__file__).parent / "values"
CHOICES = [(), *(("--values", str(path)) for path in sorted(VALUES.glob("*.yaml")))]
NAMES = ["defaults", *(path.stem for path in sorted(VALUES.glob("*.yaml")))]


def _pod(*words: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = only(rendered(*words), "Deployment")["spec"]["template"]["spec"]
    return found


def _environment(*words: str) -> Mapping[str, str]:
    [container] = _pod(*words)["containers"]
    return {one["name"]: one["value"] for one in container["env"]}


@pytest.mark.parametrize("words", CHOICES, ids=NAMES)
def test_every_object_is_valid_by_the_official_schemas(words: tuple[str, ...]) -> None:
    objects = rendered(*words)

    assert [text for one in objects for text in kubernetes_schemas.problems(one)] == []
    assert len({(one["kind"], one["metadata"]["name"]) for one in objects}) == len(objects)


@pytest.mark.parametrize("words", CHOICES, ids=NAMES)
def test_nothing_is_outside_of_namespaces(words: tuple[str, ...]) -> None:
    objects = rendered(*words)

    assert {one["metadata"]["namespace"] for one in objects} <= {NAMESPACE, "benchmarks"}
    assert not {one["kind"] for one in objects} & {"ClusterRole", "ClusterRoleBinding"}


def test_lint_has_nothing_to_say() -> None:
    said = helm("lint", "--strict", str(CHART))

    assert said.returncode == 0, said.stdout
    assert "[WARNING]" not in said.stdout


def test_the_chart_is_of_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["appVersion"] == anubis.__version__
    assert _environment()["ANUBIS_KUBERNETES_IMAGE"] == f"anubis:{anubis.__version__}"


@pytest.mark.parametrize("words", CHOICES, ids=NAMES)
def test_the_service_understands_every_setting(words: tuple[str, ...]) -> None:
    environment = _environment(*words)
    known = {key.variable for key in loading._KEYS} | {"ANUBIS_HOME"}

    assert set(environment) <= known
    settings = loading.load(environment)
    assert settings.leader_lease
    assert settings.engines == "kubernetes"
    assert settings.docker_host == "none"
    assert not settings.local_data


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("replica=2", "replica"),
        ("replicas=0", "replicas"),
        ("benchmarks.slot=1", "slot"),
        ("benchmarks.datasets=relative/path", "datasets"),
        ("settings.PATH=/", "PATH"),
        ("persistence.size=much", "size"),
        ("service.type=ExternalName", "type"),
    ],
)
def test_values_that_mean_nothing_are_refused_by_name(option: str, words: str) -> None:
    version = ("--kube-version", kubernetes_schemas.RELEASE)
    made = helm("template", "bench", str(CHART), *version, "--set", option)

    assert made.returncode != 0
    assert words in made.stderr


def test_a_volume_for_one_pod_alone_is_refused_where_there_are_two() -> None:
    version = ("--kube-version", kubernetes_schemas.RELEASE)
    modes = ("--set", "replicas=2", "--set", "persistence.accessModes={ReadWriteOncePod}")

    assert helm("template", "bench", str(CHART), *version, *modes).returncode != 0
    assert helm("template", "bench", str(CHART), *version, *modes[2:]).returncode == 0


def test_the_schema_has_every_value_and_no_other() -> None:
    def keys(schema: Mapping[str, Any], values: Mapping[str, Any], place: str) -> None:
        properties = schema.get("properties")
        if properties is None:  # a shape of Kubernetes, or free
            return
        assert set(properties) - {"global"} == set(values), place
        for name, value in values.items():
            if isinstance(value, dict):
                keys(properties[name], value, f"{place}.{name}")

    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    del values["resources"], schema["properties"]["resources"]  # either half may be missing
    keys(schema, values, "")


@pytest.mark.parametrize("words", CHOICES, ids=NAMES)
def test_the_service_has_no_more_than_it_needs_on_its_node(words: tuple[str, ...]) -> None:
    pod = _pod(*words)
    [container] = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["cpu"]


@pytest.mark.parametrize("words", CHOICES, ids=NAMES)
def test_probes_speak_as_the_service_does(words: tuple[str, ...]) -> None:
    [container] = _pod(*words)["containers"]
    scheme = "HTTPS" if "ANUBIS_TLS_KEY" in _environment(*words) else "HTTP"

    asked = {name: container[name]["httpGet"] for name in container if name.endswith("Probe")}
    assert {name: one["path"] for name, one in asked.items()} == {
        "startupProbe": "/api/v1/health",
        "livenessProbe": "/api/v1/health",
        "readinessProbe": "/api/v1/ready",
    }
    assert {one["scheme"] for one in asked.values()} == {scheme}


def test_replicas_share_the_node_of_a_volume_that_one_node_has() -> None:
    assert "affinity" not in _pod()
    assert "podAffinity" in _pod("--set", "replicas=2")["affinity"]
    many = ("--set", "replicas=2", "--set", "persistence.accessModes={ReadWriteMany}")
    assert "affinity" not in _pod(*many)


def test_a_budget_is_made_only_where_it_does_not_stop_nodes_from_being_emptied() -> None:
    kinds = [one["kind"] for one in rendered()]
    budget = only(rendered("--set", "replicas=2"), "PodDisruptionBudget")

    assert "PodDisruptionBudget" not in kinds
    assert budget["spec"]["maxUnavailable"] == 1


def test_autoscalers_leave_nodes_with_benchmarks_alone() -> None:
    pod = yaml.safe_load(only(rendered(), "ConfigMap")["data"]["pod.yaml"])

    assert pod["metadata"]["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }


def test_what_is_said_of_benchmark_pods_is_laid_over_them() -> None:
    values = ("--values", str(VALUES / "apart.yaml"))
    pod = yaml.safe_load(only(rendered(*values), "ConfigMap")["data"]["pod.yaml"])

    assert pod["spec"] == {
        "serviceAccountName": "measure-benchmark",
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "benchmarks"},
        "tolerations": [{"key": "benchmarks", "operator": "Exists", "effect": "NoSchedule"}],
        "priorityClassName": "low",
        "dnsPolicy": "ClusterFirst",
    }


def test_benchmarks_apart_are_another_namespace_for_rights_account_and_policy() -> None:
    objects = rendered("--values", str(VALUES / "apart.yaml"))
    apart = {
        (one["kind"], one["metadata"]["name"])
        for one in objects
        if one["metadata"]["namespace"] == "benchmarks"
    }

    assert apart == {
        ("Role", "measure"),
        ("RoleBinding", "measure"),
        ("ServiceAccount", "measure-benchmark"),
        ("NetworkPolicy", "measure-benchmark"),
    }
    [subject] = only(objects, "RoleBinding", "measure")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "measure", "namespace": NAMESPACE}


def test_accounts_have_no_token_unless_a_pod_asks_for_it() -> None:
    accounts = [one for one in rendered() if one["kind"] == "ServiceAccount"]

    assert len(accounts) == 2
    assert {one["automountServiceAccountToken"] for one in accounts} == {False}
    assert _pod()["automountServiceAccountToken"] is True


def test_the_account_of_benchmarks_has_no_rights() -> None:
    bindings = [one for one in rendered() if one["kind"] == "RoleBinding"]

    assert {subject["name"] for one in bindings for subject in one["subjects"]} == {"bench-anubis"}


def test_the_service_has_the_rights_that_the_engine_needs_and_no_others() -> None:
    role = only(rendered(), "Role", "bench-anubis")
    given = {
        (group, *resource.partition("/")[::2]): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    needed = {**rights.NEEDED, **rights.WITH_MPI}

    assert given == {
        (kind.group, kind.plural, part): set(verbs) for (kind, part), verbs in needed.items()
    }


def test_the_service_may_write_one_lease() -> None:
    rules = only(rendered(), "Role", "bench-anubis-lease")["rules"]

    assert [(rule["verbs"], rule.get("resourceNames")) for rule in rules] == [
        (["create"], None),  # what has no name yet cannot be named
        (["get", "update"], ["bench-anubis"]),
    ]
    assert _environment()["ANUBIS_LEADER_LEASE"] == "bench-anubis"


def test_whoever_submits_cannot_choose_the_account_of_the_service() -> None:
    enforced = yaml.safe_load(only(rendered(), "ConfigMap")["data"]["pod.yaml"])
    free = rendered("--set", "benchmarks.serviceAccount.enforced=false")
    chosen = yaml.safe_load(only(free, "ConfigMap")["data"]["pod.yaml"])

    assert enforced["spec"]["serviceAccountName"] == "bench-anubis-benchmark"
    assert "serviceAccountName" not in chosen["spec"]


def test_policies_let_nobody_in_but_to_the_port_of_the_service() -> None:
    objects = rendered("--values", str(VALUES / "replicas.yaml"))
    service = only(objects, "NetworkPolicy", "bench-anubis")["spec"]
    benchmark = only(objects, "NetworkPolicy", "bench-anubis-benchmark")["spec"]

    [rule] = service["ingress"]
    assert rule["ports"] == [{"port": "http", "protocol": "TCP"}]
    assert {"podSelector": service["podSelector"]} in rule["from"]  # replicas pass requests on
    assert [rule["from"] for rule in benchmark["ingress"]] == [
        [{"podSelector": benchmark["podSelector"]}]
    ]
    assert [rule.get("ports") for rule in benchmark["egress"]] == [
        None,
        [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    ]


def test_names_stay_short_enough_for_what_is_hung_on_them() -> None:
    long = "a" * 50
    made = helm_charts.rendered("--set", f"fullnameOverride={long}{long}")

    assert max(len(one["metadata"]["name"]) for one in made) <= 63
