"""Where units stood on a real cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.engine_kubernetes import recordings

from anubis.adapters.engine.kubernetes.stances import Exited, Failed, Gone, Running, Seen, Waiting
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

WAITING = {
    "unscheduled_gpu": "waiting for a node: no node has 1 nvidia.com/gpu, not even an empty one",
    "unscheduled_selector": "waiting for a node: no node has"
    " node.kubernetes.io/instance-type=p3.8xlarge",
    "unscheduled_toolarge": "waiting for a node: no node has 64 cpu, not even an empty one;"
    " no node has 400Gi memory, not even an empty one",
    "unscheduled_full": "waiting for a node: no node has 14Gi memory free",
    "unscheduled_exclusive": "waiting for a node: every node that has room runs another benchmark,"
    " or a pod that must be alone",
    "unscheduled_gated": "waiting for a node: scheduling gates hold it back: example.com/wait",
    "unscheduled_nopvc": 'waiting for a node: persistentvolumeclaim "datasets" not found',
    "suspended": "waiting to be let into the cluster: its Job suspended is suspended",
    "image_notfound": "waiting for the image registry.example.org/team/nope:1: not found",
    "image_denied": "waiting for the image registry.example.org/team/denied:1: pulling from host"
    " registry.example.org failed with status code [manifests 1]: 403 Forbidden",
    "image_broken": "waiting for the image registry.example.org/team/broken:1: pulling from host"
    " registry.example.org failed with status code [manifests 1]: 503 Service Unavailable",
    "image_unreachable": "waiting for the image registry.invalid/team/x:1 for more than 1 min:"
    ' failed to do request: Head "https://registry.invalid/v2/team/x/manifests/1": dial tcp:'
    " lookup registry.invalid on 192.0.2.53:53: no such host",
    "configerror": "node node1 cannot make the container for more than 1 min:"
    ' CreateContainerConfigError: secret "keys" not found',
    "nomount": "node node1 prepares its volumes and network for more than 1 min:"
    ' MountVolume.SetUp failed for volume "f" : secret "missing-secret" not found',
    "nopod_noaccount": "waiting for the cluster to make the pod of its Job for more than 1 min:"
    " its pod is forbidden: error looking up service account benchmarks/nobody:"
    ' serviceaccount "nobody" not found',
    "nopod_quota": "waiting for the cluster to make the pod of its Job: its pod is forbidden:"
    " exceeded quota: small, requested: requests.memory=1056Mi, limited: requests.memory=16Mi",
    "fetching": "fetching its data, code and files",
    "recorder_crashing": "waiting for the recorder: the recorder does not stay alive:"
    " Error (exit code 3) broken",
}
"""What a person reads while it lasts."""

LATE = {
    "unscheduled_gpu": (
        EndCause.NO_CAPACITY,
        "no node has 1 nvidia.com/gpu, not even an empty one (the scheduler: 0/1 nodes are",
    ),
    "unscheduled_selector": (EndCause.NO_CAPACITY, "no node has node.kubernetes.io/instance-type"),
    "unscheduled_gated": (EndCause.NO_CAPACITY, "scheduling gates hold it back: example.com/wait"),
    "suspended": (EndCause.NO_CAPACITY, "its Job suspended is suspended"),
    "nopod_quota": (
        EndCause.NO_CAPACITY,
        "the cluster made no pod of its Job; its pod is forbidden: exceeded quota: small",
    ),
    "nopod_noaccount": (
        EndCause.NOT_STARTED,
        "the cluster made no pod of its Job; its pod is forbidden: error looking up service",
    ),
    "image_notfound": (
        EndCause.IMAGE_UNAVAILABLE,
        "the image registry.example.org/team/nope:1: not found",
    ),
    "image_unreachable": (EndCause.IMAGE_UNAVAILABLE, "the image registry.invalid/team/x:1: fail"),
    "configerror": (EndCause.NOT_STARTED, "node node1 cannot make the container: CreateContainer"),
    "nomount": (EndCause.NOT_BROUGHT, "node node1 prepares its volumes and network; not done wi"),
    "fetching": (EndCause.NOT_BROUGHT, "fetching took longer than limits.fetching = 1 day"),
    "recorder_crashing": (EndCause.NOT_BROUGHT, "the recorder does not stay alive: Error (exit"),
}
"""What it ends with when nothing changes."""

FAILED = {
    "image_invalidname": (
        EndCause.IMAGE_UNAVAILABLE,
        (
            'the image Team/UPPER::x: Failed to apply default image tag "Team/UPPER::x": couldn\'t'
            ' parse image name "Team/UPPER::x": invalid reference format: repository name'
            " (UPPER) must"
            " be lowercase"
        ),
    ),
    "image_never": (
        EndCause.IMAGE_UNAVAILABLE,
        (
            'the image anubis-test/nowhere:1: Container image "anubis-test/nowhere:1" is not'
            " present"
            " with pull policy of Never"
        ),
    ),
    "badcommand": (
        EndCause.NOT_STARTED,
        (
            'the program was not found in the image: exec: "no-such-program": executable file not'
            " found in $PATH"
        ),
    ),
    "badexec": (
        EndCause.NOT_STARTED,
        'the program cannot be executed: exec: "/etc/passwd": permission denied',
    ),
    "rejected_outofcpu": (
        EndCause.EVICTED,
        (
            "node node1 has no more room for it: OutOfcpu: Pod was rejected: Node didn't have"
            " enough"
            " resource: cpu, requested: 50010, used: 100, capacity: 2000"
        ),
    ),
    "rejected_nodeaffinity": (
        EndCause.EVICTED,
        (
            "node node1 did not take it: NodeAffinity: Pod was rejected: Predicate NodeAffinity"
            " failed:"
            " node(s) didn't match Pod's node affinity/selector"
        ),
    ),
    "fetchbad": (EndCause.DATA_INVALID, "s3://bucket/a has the md5 1, not 2"),
    "fetchsilent": (EndCause.NOT_BROUGHT, "fetching failed: Error, exit code 7"),
    "recorder_crashed": (
        EndCause.NOT_BROUGHT,
        "the recorder does not stay alive: Error (exit code 3) broken",
    ),
    "evicted_disk": (
        EndCause.EVICTED,
        'node node1 evicted it: Usage of EmptyDir volume "d" exceeds the limit "4Mi".',
    ),
}
"""What it ends with at once."""

EXITED = {
    "exit0": (EndCause.EXITED, 0, None, ""),
    "exit0_over": (EndCause.EXITED, 0, None, ""),
    "exit3": (EndCause.EXITED, 3, None, ""),
    "exit3_over": (EndCause.EXITED, 3, None, ""),
    "sigkill": (EndCause.EXITED, None, 9, ""),
    "oom": (EndCause.OUT_OF_MEMORY, None, 9, ""),
    "deleted": (EndCause.LOST, None, 15, "somebody deleted its pod deleted-9rt99"),
    "evicted": (
        EndCause.EVICTED,
        None,
        15,
        "it was evicted from node node1, as by a drain: Eviction API: evicting",
    ),
    "deadline": (EndCause.TIMED_OUT, None, 15, "its Job was active longer than its deadline"),
    "poddeadline_over": (
        EndCause.TIMED_OUT,
        None,
        15,
        (
            "its pod was active longer than its deadline: Pod was active on the node longer than"
            " the"
            " specified deadline"
        ),
    ),
    "indexed": (EndCause.EXITED, 4, None, ""),
}

LEAVING = {
    "deleted_running": (EndCause.LOST, "somebody deleted its pod stubborn-zz4q4"),
    "jobdeleted": (EndCause.LOST, f"somebody deleted its workload {recordings.WORKLOAD}"),
    "jobforeground": (EndCause.LOST, "somebody deleted its Job jobforeground"),
    "suspendedlater": (EndCause.EVICTED, "its Job suspendedlater was suspended"),
}
"""Those that still run, and whose pods are being taken away."""


@pytest.mark.parametrize("name", WAITING)
def test_a_unit_that_waits_says_for_what_in_words_to_act_on(name: str) -> None:
    found = recordings.moment(name).explained()
    assert isinstance(found, Waiting)
    assert found.message == WAITING[name]


@pytest.mark.parametrize("name", WAITING)
def test_a_situation_that_does_not_change_reads_the_same(name: str) -> None:
    moment = recordings.moment(name)
    words = {
        found.detail
        for seconds in range(0, 20, 3)
        if isinstance(found := moment.explained(after=timedelta(seconds=seconds)), Waiting)
    }
    assert len(words) == 1


@pytest.mark.parametrize("name", ["image_notfound", "image_denied"])
def test_a_pull_that_failed_reads_the_same_before_and_during_the_pause_for_the_next(
    name: str,
) -> None:
    failed = recordings.moment(f"{name}_error").stand()
    paused = recordings.moment(name).stand()
    assert isinstance(failed, Waiting)
    assert isinstance(paused, Waiting)
    assert (failed.what, failed.detail) == (paused.what, paused.detail)


@pytest.mark.parametrize("name", LATE)
def test_nothing_is_waited_for_for_ever(name: str) -> None:
    moment = recordings.moment(name)
    found = moment.explained(after=DAY)
    cause, words = LATE[name]
    assert isinstance(found, Failed)
    assert found.cause is cause
    assert found.message.startswith(words)
    assert found == moment.explained(after=2 * DAY), "the end does not depend on when one looks"


@pytest.mark.parametrize("name", FAILED)
def test_what_cannot_begin_has_failed_at_once(name: str) -> None:
    found = recordings.moment(name).explained()
    assert isinstance(found, Failed)
    assert (found.cause, found.message) == FAILED[name]


@pytest.mark.parametrize("name", EXITED)
def test_a_program_that_is_over_has_its_exit_and_who_took_it_away(name: str) -> None:
    found = recordings.moment(name).stand()
    assert isinstance(found, Exited)
    assert (found.cause, found.exit_code, found.signal, found.message) == EXITED[name]
    assert found.out_of_memory == (name == "oom")
    assert found.started_at is not None
    assert found.started_at <= found.at


def test_a_recorder_is_there_while_its_pod_is() -> None:
    during, after = recordings.moment("exit3").stand(), recordings.moment("exit3_over").stand()
    assert isinstance(during, Exited)
    assert isinstance(after, Exited)
    assert (during.has_recorder, after.has_recorder) == (True, False)


def test_a_program_that_runs_says_since_when() -> None:
    moment = recordings.moment("running")
    found = moment.stand(after=DAY)
    assert isinstance(found, Running)
    assert (found.trouble, found.leaving) == ("", None)
    assert moment.at - MINUTE < found.since <= moment.at


@pytest.mark.parametrize("name", LEAVING)
def test_a_program_whose_pod_is_deleted_still_runs_for_a_while_and_is_lost_then(name: str) -> None:
    moment = recordings.moment(name)
    found = moment.stand()
    assert isinstance(found, Running)
    assert found.leaving is not None
    assert (found.leaving.cause, found.leaving.message) == LEAVING[name]
    late = moment.stand(after=3 * MINUTE)
    assert isinstance(late, Failed)
    assert late.cause is EndCause.LOST
    assert late.message.endswith("; node node1 has not said since then that it ended")


def test_a_pod_that_is_gone_was_deleted_by_somebody() -> None:
    moment = recordings.moment("deleted_gone")
    seen = Seen(created_at=moment.at - MINUTE, workload="deleted", pod="deleted-9rt99")
    assert moment.stand(seen=seen) == Gone(message="somebody deleted its pod deleted-9rt99")


def test_a_pod_that_is_gone_after_a_deadline_was_too_slow() -> None:
    moment = recordings.moment("deadline_gone")
    seen = Seen(created_at=moment.at - MINUTE, workload="deadline", pod="deadline-62l88")
    gone = moment.stand(seen=seen)
    assert gone == Gone(
        cause=EndCause.TIMED_OUT, message="its Job was active longer than its deadline"
    )
    never_seen = moment.stand()
    assert isinstance(never_seen, Failed)
    assert never_seen.cause is EndCause.TIMED_OUT


@pytest.mark.parametrize(
    ("name", "patience"),
    [
        ("image_notfound", 2 * MINUTE),
        ("image_denied", 2 * MINUTE),
        ("image_broken", 30 * MINUTE),
        ("image_unreachable", 30 * MINUTE),
        ("configerror", 2 * MINUTE),
        ("unscheduled_gpu", 60 * MINUTE),
        ("unscheduled_gated", 60 * MINUTE),
        ("suspended", 60 * MINUTE),
        ("nopod_quota", 60 * MINUTE),
        ("nomount", 60 * MINUTE),
        ("fetching", DAY),
    ],
)
def test_a_limit_counts_from_a_time_that_the_cluster_wrote_down(
    name: str, patience: timedelta
) -> None:
    moment = recordings.moment(name)
    early = moment.stand()
    assert isinstance(early, Waiting)
    passed = moment.at - early.since
    before = moment.stand(after=patience - passed - timedelta(milliseconds=1))
    after = moment.stand(after=patience - passed)
    assert isinstance(before, Waiting)
    assert isinstance(after, Failed)
    assert after.at == early.since + patience


def test_limits_of_a_descriptor_are_heeded() -> None:
    second = timedelta(seconds=1)
    limits = Limits(capacity=second, pulling=second, starting=second, fetching=second)
    for name in WAITING:
        found = recordings.moment(name).stand(after=2 * second, limits=limits)
        assert isinstance(found, Failed), name


def test_all_that_was_recorded_is_used() -> None:
    pulls = {"image_notfound_error", "image_denied_error"}
    others = {"running", "deleted_gone", "deadline_gone", *pulls}
    used = {*WAITING, *FAILED, *EXITED, *LEAVING, *others}
    assert used == set(recordings.NAMES)
