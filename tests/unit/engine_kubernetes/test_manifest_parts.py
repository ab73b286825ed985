"""The parts of the manifests: names, labels, groups of workers, what is laid over, obstacles."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.engine_kubernetes import manifest_cases as cases

from anubis.adapters.engine.kubernetes import naming
from anubis.adapters.engine.kubernetes.manifests import carrying, merging, obstacles, workloads
from anubis.adapters.engine.kubernetes.manifests.site import Brought, Carried, Setting
from anubis.domain import blanks
from anubis.domain.plan import Fetch, Mount, Placement, Plan, Resources
from anubis.domain.run import RunId

NAMES = naming.Names(installation="a1b2c3d4", namespace="here", run_id=cases.RUN)
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
WITH_OPERATOR = dataclasses.replace(cases.SITE, has_mpi_operator=True)


def mpi() -> Plan:
    return cases.descriptor_plan(cases.DESCRIPTORS["sample-mpi"])


def changed(plan: Plan, **fields: Any) -> Plan:
    return dataclasses.replace(plan, units=(dataclasses.replace(plan.units[0], **fields),))


def spec(manifest: Mapping[str, Any]) -> Any:
    return manifest["spec"]["template"]["spec"]


@given(st.text())
def test_whatever_users_say_becomes_a_legal_label(text: str) -> None:
    assert LABEL.fullmatch(naming.label_value(text))


def test_our_labels_are_never_replaced_by_those_of_users() -> None:
    plan = dataclasses.replace(
        cases.requested(), labels={naming.RUN: "other", "action-id": "x", "job-name": "y", "a": "b"}
    )
    for one in cases.objects(plan).objects:
        labels: Any = one["metadata"]
        assert labels["labels"]["action-id"] == labels["labels"][naming.RUN] == cases.RUN
        assert labels["labels"]["a"] == "b"
        assert "job-name" not in labels["labels"]
        assert "y" in labels["annotations"][naming.VERBATIM]


@pytest.mark.parametrize("site", [cases.SITE, WITH_OPERATOR], ids=["jobs", "operator"])
def test_all_of_a_run_that_a_schedule_fired_names_the_schedule(site: workloads.Site) -> None:
    fired = dataclasses.replace(mpi(), schedule=cases.SCHEDULE)
    made = [*cases.objects(fired, site).objects, *cases.objects(cases.everything()).objects]
    assert {one["kind"] for one in made} > {"Secret", "Job"}
    assert {labels[naming.PARENT] for one in made for labels in borne(one)} == {cases.SCHEDULE}


@pytest.mark.parametrize("schedule", ["", cases.SCHEDULE], ids=["of nobody", "of a schedule"])
@pytest.mark.parametrize("key", [naming.PARENT, f".{naming.PARENT}!"])
def test_no_user_can_make_a_run_look_like_one_of_a_schedule(key: str, schedule: str) -> None:
    plan = dataclasses.replace(cases.requested(), labels={key: "forged"}, schedule=schedule)
    [one] = cases.objects(plan).objects
    assert [labels.get(naming.PARENT, "") for labels in borne(one)] == [schedule, schedule]
    metadata: Any = one["metadata"]
    assert "forged" in metadata["annotations"][naming.VERBATIM]


@pytest.mark.parametrize("key", [naming.ACTION, naming.CLIENT, naming.PARENT, naming.CREATOR])
def test_what_users_say_in_a_label_of_ours_is_kept_in_an_annotation(key: str) -> None:
    plan = dataclasses.replace(cases.requested(), labels={key: "theirs"})
    assert naming.given_labels(plan) == {}
    assert "theirs" in naming.given_annotations(plan)[naming.VERBATIM]


def borne(one: Mapping[str, Any]) -> list[Any]:
    """The labels of an object, and of the pods that it makes."""
    spec = one.get("spec", {})
    replicas = [each["template"] for each in spec.get("mpiReplicaSpecs", {}).values()]
    templates = [spec["template"]] if "template" in spec else replicas
    return [each["metadata"]["labels"] for each in (one, *templates)]


def test_names_stay_below_what_labels_and_hosts_may_have() -> None:
    longest = NAMES.job("w" * naming.LONGEST_UNIT)
    assert len(longest) <= 50
    assert naming.is_host_name("w" * naming.LONGEST_UNIT)
    assert not naming.is_host_name("w" * naming.LONGEST_UNIT + "w")


def test_two_runs_of_the_same_moment_have_other_names() -> None:
    other = dataclasses.replace(NAMES, run_id=RunId("018f0000-0000-7000-8000-0123456789ac"))
    assert other.run != NAMES.run


@pytest.mark.parametrize("site", [cases.SITE, WITH_OPERATOR], ids=["jobs", "operator"])
def test_a_pod_tells_which_unit_it_is(site: workloads.Site) -> None:
    made = workloads.objects(site, cases.RUN, mpi(), Brought(keys=cases.KEYS))
    for unit in ("worker-0", "worker-1", "launcher"):
        labels = {**made.names.labels(), **made.of(unit).labels_of(unit)}
        assert naming.unit_of(labels) == (cases.RUN, unit)
        assert made.pod_of(unit).startswith(made.names.selector + ",")
    assert naming.unit_of({"app": "other"}) is None


def test_one_object_makes_all_workers_and_each_unit_brings_what_it_needs() -> None:
    made = cases.objects(mpi())
    assert made.of("worker-0") is made.of("worker-1")
    kinds = [[one["kind"] for one in made.for_unit(unit)] for unit in ("worker-1", "launcher")]
    assert kinds == [["Secret", "Service", "Job"], ["Secret", "Service", "Job"]]
    assert [one["kind"] for one in made.objects] == ["Secret", "Service", "Job", "Job"]


def test_the_operator_names_hosts_as_the_indexed_job_does() -> None:
    def told(site: workloads.Site) -> Any:
        made: Any = workloads.objects(site, cases.RUN, mpi(), Brought(keys=cases.KEYS)).objects
        return made[0]["stringData"]["hostfile"]

    assert told(cases.SITE) == told(WITH_OPERATOR)
    assert told(cases.SITE).startswith(f"{NAMES.job('worker-0')}.{NAMES.service} slots=")


def test_workers_that_differ_have_a_job_each() -> None:
    plan = mpi()
    other = dataclasses.replace(plan.units[0], environment={"RANK": "0"})
    made = cases.objects(dataclasses.replace(plan, units=(other, *plan.units[1:])), WITH_OPERATOR)
    assert [one.units for one in made.workloads] == [("worker-0",), ("worker-1",), ("launcher",)]


def test_nothing_is_ever_tried_again() -> None:
    for path in cases.DESCRIPTORS.values():
        try:
            plan = cases.descriptor_plan(path)
        except Exception:  # noqa: BLE001 - those that Kubernetes cannot run
            continue
        for one in cases.objects(plan).workloads:
            made: Any = one.manifest
            assert 0 in (made["spec"].get("backoffLimit"), made["spec"].get("backoffLimitPerIndex"))
            assert spec(made)["restartPolicy"] == "Never"


def test_large_code_is_cut_into_secrets_that_hold_it_all() -> None:
    content = bytes(range(256)) * 8192  # 2 MiB
    brought = Brought(
        scripts={"a.tar": content, "b.tar": b""}, data={0: Carried(name="x", content=b"1")}
    )
    setting = Setting(site=cases.SITE, names=NAMES, plan=cases.everything(), brought=brought)
    kept: dict[str, bytes] = {}
    for one in carrying.secrets(setting, {}):
        data: Any = one["data"]
        [(name, text)] = data.items()
        kept[f"{carrying.FOLDER}/{name}"] = base64.b64decode(text)
        assert len(json.dumps(one)) < obstacles.MOST_PER_OBJECT
    parts = carrying.parts(brought)
    assert b"".join(kept[part] for part in parts["a.tar"]) == content
    assert [kept[part] for part in parts["b.tar"]] == [b""]
    assert len(kept) == 5
    volume: Any = carrying.volume(setting)
    assert len(volume["projected"]["sources"]) == 5


def test_the_same_file_of_this_machine_has_the_same_place_in_every_run() -> None:
    one, other = Carried(name="a.csv", content=b"1"), Carried(name="a.csv", content=b"2")
    assert carrying.path(one) == carrying.path(dataclasses.replace(one))
    assert carrying.path(one) != carrying.path(other)


def test_code_that_is_too_large_is_refused_with_what_to_do() -> None:
    brought = Brought(scripts={"a.tar": bytes(carrying.MOST + 1)})
    [trouble] = obstacles.obstacles(cases.requested(), brought)
    assert "at most 32 MiB" in trouble
    assert "data.sources" in trouble


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"image": None}, "names no image"),
        ({"niceness": 5}, "hardware.niceness"),
        ({"cpu_affinity": (0,)}, "hardware.cpu_affinity"),
        ({"resources": Resources(ulimits={"memlock": -1})}, "memlock"),
        ({"environment": {"A=B": "c"}}, "'A=B'"),
        ({"environment": {"": "c"}}, "printable ASCII"),
        ({"mounts": (Mount(source="/etc", target="/x"),)}, "/etc"),
        (
            {
                "mounts": (Mount(source=blanks.data(0), target="/dev/shm"),),
                "resources": Resources(),
            },
            "/dev/shm",
        ),
    ],
)
def test_what_pods_cannot_have_is_refused_in_words(fields: Any, words: str) -> None:
    [trouble] = obstacles.obstacles(changed(cases.requested(), **fields))
    assert words in trouble


def test_a_unit_with_a_name_that_no_host_can_have_is_refused() -> None:
    plan = cases.requested()
    unit = dataclasses.replace(plan.units[0], name="Not_A_Host")
    [trouble] = obstacles.obstacles(dataclasses.replace(plan, units=(unit,), deciding=unit.name))
    assert "'Not_A_Host'" in trouble


def test_an_object_that_no_cluster_would_take_is_told_before() -> None:
    plan = changed(cases.requested(), environment={"LONG": "x" * 2**21})
    [trouble] = obstacles.too_large(cases.objects(plan).objects)
    assert trouble.startswith("Job anubis-0123456789ab-benchmark: found 2.0 MiB")


def test_what_the_installation_lays_over_every_pod_has_the_last_word_but_for_our_labels() -> None:
    overlay = {
        "metadata": {"labels": {naming.RUN: "x", "team": "ml"}},
        "spec": {
            "dnsPolicy": "Default",
            "initContainers": [{"name": "recorder", "image": "other"}],
            "volumes": [{"name": "more", "emptyDir": {}}],
        },
    }
    made: Any = cases.objects(
        cases.requested(), dataclasses.replace(cases.SITE, overlay=overlay)
    ).objects[-1]
    pod = spec(made)
    assert made["spec"]["template"]["metadata"]["labels"][naming.RUN] == cases.RUN
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "ml"
    assert pod["dnsPolicy"] == "Default"
    [recorder] = pod["initContainers"]
    assert recorder["image"] == "other"
    assert recorder["restartPolicy"] == "Always"
    assert {"name": "more", "emptyDir": {}} in pod["volumes"]


def test_lists_without_names_are_lengthened() -> None:
    below, above = {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}
    assert merging.merged(below, above) == {"tolerations": [{"key": "a"}, {"key": "b"}]}


def test_whoever_waits_for_others_waits_for_their_names() -> None:
    plan = cases.descriptor_plan(cases.DESCRIPTORS["sample-inference"])
    made: Any = cases.objects(plan).of("client").manifest
    [fetch] = [one for one in spec(made)["initContainers"] if one["name"] == "fetch"]
    assert json.loads(fetch["env"][0]["value"])["hosts"] == [f"server.{NAMES.service}"]
    benchmark = spec(made)["containers"][0]
    told = {one["name"]: one["value"] for one in benchmark["env"]}
    assert told["INFERENCE_SERVER_HOST"] == f"server.{NAMES.service}"


def test_programs_that_talk_to_each_other_are_in_one_zone_if_it_has_room() -> None:
    for site in (cases.SITE, WITH_OPERATOR):
        for template in templates(cases.objects(mpi(), site)):
            [wish] = template["spec"]["affinity"]["podAffinity"][
                "preferredDuringSchedulingIgnoredDuringExecution"
            ]
            term = wish["podAffinityTerm"]
            assert term["topologyKey"] == "topology.kubernetes.io/zone"
            wanted = term["labelSelector"]["matchLabels"]
            assert wanted.items() <= template["metadata"]["labels"].items()


@pytest.mark.parametrize("site", [cases.SITE, WITH_OPERATOR], ids=["jobs", "operator"])
def test_workers_have_a_node_each_and_their_launcher_is_beside_one(site: workloads.Site) -> None:
    """Else two instances would need three nodes."""
    plan = mpi()
    units = tuple(
        dataclasses.replace(
            unit, placement=Placement(exclusive=True, joins_own=unit.name == "launcher")
        )
        for unit in plan.units
    )
    made = templates(cases.objects(dataclasses.replace(plan, units=units), site))
    pods = {one["metadata"]["labels"][naming.UNIT]: one for one in made}
    worker, launcher = (pods[name]["metadata"]["labels"] for name in ("worker", "launcher"))
    another = {naming.RUN: "another", naming.BESIDE: "another"}
    for pod in pods.values():
        assert is_kept_apart(pod, {**worker, naming.RUN: "another"})
        assert is_kept_apart(pod, {**launcher, **another})
    assert is_kept_apart(pods["worker"], worker)
    assert not is_kept_apart(pods["worker"], launcher)
    assert not is_kept_apart(pods["launcher"], worker)


def is_kept_apart(pod: Any, labels: Mapping[str, str]) -> bool:
    """Whether a pod is never on a node with one of these labels."""
    # Of several terms a pod that leaves meets only one, and then no scheduler looks again.
    [term] = pod["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    selector = term["labelSelector"]
    named = all(labels.get(key) == value for key, value in selector["matchLabels"].items())
    [other] = selector["matchExpressions"]
    assert other["operator"] == "NotIn"
    return named and labels.get(other["key"]) not in other["values"]


def test_a_program_alone_has_no_wish_for_company() -> None:
    [template] = templates(cases.objects(cases.requested()))
    assert "affinity" not in template["spec"]


def templates(made: workloads.Workloads) -> list[Any]:
    """Those of all pods."""
    found: list[Any] = []
    for workload in made.workloads:
        of_workload: Any = workload.manifest["spec"]
        replicas = of_workload.get("mpiReplicaSpecs", {"": of_workload})
        found += [one["template"] for one in replicas.values()]
    return found


def test_who_names_no_account_gets_no_key_to_the_cluster() -> None:
    made: Any = cases.objects(cases.requested()).objects[-1]
    assert spec(made)["automountServiceAccountToken"] is False


def test_a_signed_address_is_not_seen_by_those_who_look_at_pods() -> None:
    fetches = (Fetch(uri="https://host/x?signature=abc"),)
    mounts = (Mount(source=blanks.data(0), target="/x"),)
    plan = dataclasses.replace(changed(cases.requested(), mounts=mounts), fetches=fetches)
    made: Any
    secret, made = cases.objects(plan).objects
    assert "signature" in json.dumps(secret)
    assert "signature" not in json.dumps(made)
    reference = spec(made)["initContainers"][0]["env"][0]["valueFrom"]["secretKeyRef"]
    content: Any = secret["stringData"]
    assert json.loads(content[reference["key"]])["fetches"][0]["uri"] == fetches[0].uri
