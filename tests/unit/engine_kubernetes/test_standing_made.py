"""Where units stand in situations that a cluster of one machine does not get into."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.engine_kubernetes import recordings

from anubis.adapters.engine.kubernetes import standing
from anubis.adapters.engine.kubernetes.stances import Exited, Failed, Gone, Running, Seen, Waiting
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits

MINUTE = timedelta(minutes=1)
LATER = "2099-01-01T00:00:00Z"


def changed(name: str, **status: Any) -> recordings.Moment:
    """A recording whose pod says something else too."""
    content = recordings.raw(name)
    content["pods"][0]["status"].update(status)
    return recordings.moment_of(content)


def with_condition(
    name: str, kind: str, reason: str = "", message: str = "", status: str = "True"
) -> recordings.Moment:
    """A recording whose pod has one more condition, as of its time."""
    content = recordings.raw(name)
    conditions = content["pods"][0]["status"]["conditions"]
    conditions[:] = [one for one in conditions if one["type"] != kind]
    at = content["at"]
    said = {"status": status, "reason": reason, "message": message, "lastTransitionTime": at}
    conditions.append({"type": kind, **said})
    return recordings.moment_of(content)


@pytest.mark.parametrize(
    ("reason", "message", "cause", "words"),
    [
        (
            "Evicted",
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi. ",
            EndCause.EVICTED,
            (
                "node node1 evicted it: The node was low on resource: memory. Threshold quantity: "
                "100Mi, available: 20Mi."
            ),
        ),
        (
            "Preempting",
            "Preempted in order to admit critical pod",
            EndCause.EVICTED,
            (
                "node node1 needed its place for a pod the cluster cannot miss: Preempted in"
                " order to "
                "admit critical pod"
            ),
        ),
        (
            "Terminated",
            "Pod was terminated in response to imminent node shutdown.",
            EndCause.EVICTED,
            "node node1 was shut down: Pod was terminated in response to imminent node shutdown.",
        ),
        ("NodeLost", "", EndCause.LOST, "node node1 no longer answers"),
        (
            "DeadlineExceeded",
            "",
            EndCause.TIMED_OUT,
            "its pod was active longer than its deadline",
        ),
        (
            "OutOfnvidia.com/gpu",
            "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu",
            EndCause.EVICTED,
            (
                "node node1 has no more room for it: OutOfnvidia.com/gpu: Pod was rejected: Node "
                "didn't have enough resource: nvidia.com/gpu"
            ),
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu",
            EndCause.EVICTED,
            (
                "node node1 did not take it: UnexpectedAdmissionError: Allocate failed due to "
                "requested number of devices unavailable for nvidia.com/gpu"
            ),
        ),
        (
            "AppArmor",
            "Cannot enforce AppArmor",
            EndCause.NOT_STARTED,
            "node node1 did not take it: AppArmor: Cannot enforce AppArmor",
        ),
        (
            "NodeShutdown",
            "Pod was rejected as the node is shutting down.",
            EndCause.EVICTED,
            "node node1 was shut down: Pod was rejected as the node is shutting down.",
        ),
    ],
)
def test_a_pod_that_failed_without_its_program_says_who_ended_it(
    reason: str, message: str, cause: EndCause, words: str
) -> None:
    moment = changed(
        "image_notfound", phase="Failed", reason=reason, message=message, containerStatuses=[]
    )
    found = moment.stand()
    assert isinstance(found, Failed)
    assert (found.cause, found.message) == (cause, words)


@pytest.mark.parametrize(
    ("reason", "cause", "words"),
    [
        (
            "PreemptionByScheduler",
            EndCause.EVICTED,
            "a pod of higher priority took its place on node node1: why",
        ),
        (
            "DeletionByTaintManager",
            EndCause.EVICTED,
            "node node1 no longer answers, or was given a taint that it does not tolerate: why",
        ),
        (
            "EvictionByEvictionAPI",
            EndCause.EVICTED,
            "it was evicted from node node1, as by a drain: why",
        ),
        ("TerminationByKubelet", EndCause.EVICTED, "node node1 ended it: why"),
        ("DeletionByPodGC", EndCause.LOST, "node node1 no longer exists: why"),
        ("SomethingNew", EndCause.EVICTED, "node node1 gave it up: why"),
    ],
)
def test_a_disruption_says_who_took_the_pod_away(reason: str, cause: EndCause, words: str) -> None:
    moment = with_condition("running", "DisruptionTarget", reason, "why")
    found = moment.stand()
    assert isinstance(found, Running)
    assert found.leaving is not None
    assert (found.leaving.cause, found.leaving.message) == (cause, words)
    pending = with_condition("image_notfound", "DisruptionTarget", reason, "why").stand()
    assert isinstance(pending, Failed)
    assert (pending.cause, pending.message) == (cause, words)


def test_a_program_that_ended_before_its_pod_was_deleted_ended_by_itself() -> None:
    content = recordings.raw("exit0")
    content["pods"][0]["metadata"] |= {
        "deletionTimestamp": LATER,
        "deletionGracePeriodSeconds": 30,
    }
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Exited)
    assert (found.cause, found.exit_code) == (EndCause.EXITED, 0)


def test_a_program_that_ends_well_after_its_pod_was_deleted_has_not_ended_by_itself() -> None:
    content = recordings.raw("exit0")
    began = content["pods"][0]["metadata"]["creationTimestamp"]
    content["pods"][0]["metadata"] |= {"deletionTimestamp": began}
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Exited)
    assert found.cause is EndCause.LOST


def test_deletion_began_when_patience_did_and_not_when_it_ends() -> None:
    view = standing.pod_view(recordings.raw("deadline")["pods"][0])
    assert view.deleting_since == datetime(2026, 11, 15, 18, 38, 11, tzinfo=UTC)


def test_a_node_that_is_silent_is_told_while_its_pods_may_still_run() -> None:
    content = recordings.raw("running")
    for one in content["pods"][0]["status"]["conditions"]:
        one["status"] = "False" if one["type"] == "Ready" else "True"
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Running)
    assert found.trouble == "node node1 does not answer"


def test_a_pod_of_unknown_phase_is_lost_with_its_node() -> None:
    found = changed("running", phase="Unknown").stand(after=10 * MINUTE)
    assert isinstance(found, Failed)
    assert found.cause is EndCause.LOST
    assert found.message.startswith("node node1 no longer answers")


def test_of_two_pods_for_one_unit_the_newest_counts_and_somebody_hears_of_it() -> None:
    content = recordings.raw("running")
    older = recordings.raw("exit3")["pods"][0]
    older["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    content["pods"].append(older)
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Running)
    name = content["pods"][0]["metadata"]["name"]
    assert found.trouble == f"(2 pods exist for it; this is of the newest, {name})"


def test_a_queue_that_holds_a_job_back_is_named() -> None:
    content = recordings.raw("suspended")
    content["workload"]["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Waiting)
    assert found.detail == "its Job suspended is suspended by the queue gpus"


def test_a_workload_that_is_gone_before_it_made_a_pod_was_deleted_by_somebody() -> None:
    moment = recordings.moment("nopod_quota")
    seen = Seen(created_at=moment.at, workload="anubis-1")
    gone = standing.stand([], None, seen, moment.at, Limits())
    assert gone == Gone(message="somebody deleted its workload anubis-1")
    content = recordings.raw("nopod_quota")
    content["workload"]["metadata"]["deletionTimestamp"] = LATER
    going = recordings.moment_of(content).stand()
    assert going == Gone(message="somebody deleted its Job quota")


def test_a_workload_that_nobody_has_seen_yet_is_waited_for() -> None:
    moment = recordings.moment("running")
    seen = Seen(created_at=moment.at)
    assert isinstance(standing.stand([], None, seen, moment.at, Limits()), Waiting)
    late = standing.stand([], None, seen, moment.at + timedelta(hours=1), Limits())
    assert isinstance(late, Failed)


def test_what_was_known_of_a_pod_that_is_gone_is_not_forgotten() -> None:
    moment = recordings.moment("evicted")
    seen = Seen(created_at=moment.at, workload="evicted")
    pods = [standing.pod_view(pod) for pod in moment.pods]
    job = standing.job_view(moment.workload)
    seen = standing.remembered(seen, pods, job)
    gone = standing.stand([], job, seen, moment.at, Limits())
    assert isinstance(gone, Gone)
    assert gone.cause is EndCause.EVICTED
    assert gone.message.startswith("it was evicted from node node1")


def test_a_pod_that_its_job_deletes_because_another_failed_is_dismissed() -> None:
    content = recordings.raw("running")
    content["workload"] = recordings.raw("indexed")["workload"]
    content["pods"][0]["metadata"]["deletionTimestamp"] = "2026-11-15T18:39:44Z"
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Running)
    assert found.leaving is not None
    assert found.leaving.cause is EndCause.DISMISSED
    assert found.leaving.message == "the other pods of its Job indexed had ended"


def test_a_pod_whose_job_failed_after_it_was_deleted_was_deleted_by_somebody() -> None:
    content = recordings.raw("running")
    content["workload"] = recordings.raw("indexed")["workload"]
    content["pods"][0]["metadata"]["deletionTimestamp"] = "2026-11-15T18:39:43Z"
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Running)
    assert found.leaving is not None
    assert found.leaving.cause is EndCause.LOST


def test_the_end_of_an_mpi_job_is_the_end_of_its_workers() -> None:
    content = recordings.raw("running")
    pod = content["pods"][0]
    pod["metadata"]["deletionTimestamp"] = "2026-11-15T18:39:44Z"
    mpi_job = {
        "metadata": {"name": "anubis-1"},
        "spec": {"runPolicy": {"suspend": False}},
        "status": {
            "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {"active": 2}},
            "conditions": [
                {"type": "Created", "status": "True", "reason": "MPIJobCreated"},
                {
                    "type": "Succeeded",
                    "status": "True",
                    "reason": "MPIJobSucceeded",
                    "lastTransitionTime": "2026-11-15T18:39:43Z",
                },
            ],
        },
    }
    job = standing.mpi_job_view(mpi_job)
    assert (job.kind, job.active, job.succeeded, job.is_complete) == ("MPIJob", 2, 1, True)
    now = recordings.moment("running").at
    seen = Seen(created_at=now, workload="anubis-1")
    found = standing.stand([standing.pod_view(pod)], job, seen, now, Limits())
    assert isinstance(found, Running)
    assert found.leaving is not None
    assert found.leaving.cause is EndCause.DISMISSED


def test_an_mpi_job_that_is_suspended_or_has_failed_is_told() -> None:
    now = recordings.moment("running").at
    seen = Seen(created_at=now, workload="anubis-1")
    held = standing.mpi_job_view(
        {"metadata": {"name": "anubis-1"}, "spec": {"runPolicy": {"suspend": True}}}
    )
    found = standing.stand([], held, seen, now, Limits())
    assert isinstance(found, Waiting)
    assert found.message.endswith("its MPIJob anubis-1 is suspended")
    failed = standing.mpi_job_view(
        {
            "status": {
                "conditions": [
                    {
                        "type": "Failed",
                        "status": "True",
                        "reason": "InvalidMPIJob",
                        "message": "launcher missing",
                    }
                ]
            }
        }
    )
    end = standing.stand([], failed, seen, now, Limits())
    assert isinstance(end, Failed)
    assert end.message == "its MPIJob failed: InvalidMPIJob: launcher missing"


def test_a_node_that_says_nothing_of_its_pod_does_not_keep_it_for_ever() -> None:
    moment = changed("running", containerStatuses=[], initContainerStatuses=[], phase="Pending")
    found = moment.stand()
    assert isinstance(found, Waiting)
    assert found.what == "waiting for node node1 to begin with it"
    late = moment.stand(after=timedelta(hours=1))
    assert isinstance(late, Failed)
    assert late.cause is EndCause.LOST


def test_an_image_that_takes_long_is_named_and_has_its_limit() -> None:
    creating = {"name": "benchmark", "state": {"waiting": {"reason": "PodInitializing"}}}
    moment = changed("running", containerStatuses=[creating], phase="Pending")
    found = moment.stand(after=9 * MINUTE)
    assert isinstance(found, Waiting)
    image = "the image anubis-test/busybox:83efed6a7801"
    assert found.message == f"pulling {image} for more than 8 min"
    late = moment.stand(after=30 * MINUTE)
    assert isinstance(late, Failed)
    assert late.message == f"{image} could not be pulled within limits.pulling = 30 min"


@pytest.mark.parametrize("name", ["recorder", "fetch"])
def test_of_our_own_image_it_is_said_which_setting_names_it(name: str) -> None:
    said = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "anubis:1": no'}
    waiting = {"name": name, "image": "anubis:1", "state": {"waiting": said}}
    content = recordings.raw("image_notfound")
    content["pods"][0]["status"].update(initContainerStatuses=[waiting])
    content["pods"][0]["spec"]["initContainers"] = [{"name": name, "image": "anubis:1"}]
    found = recordings.moment_of(content).stand()
    assert isinstance(found, Waiting)
    ours = "waiting for our own image anubis:1 (ANUBIS_KUBERNETES_IMAGE names it): no"
    assert found.message == ours


def test_a_child_that_was_killed_for_memory_does_not_fail_a_program_that_ends_well() -> None:
    ended = {
        "name": "benchmark",
        "state": {"terminated": {"exitCode": 0, "reason": "OOMKilled", "finishedAt": LATER}},
    }
    found = changed("oom", containerStatuses=[ended]).stand()
    assert isinstance(found, Exited)
    assert (found.cause, found.exit_code, found.out_of_memory) == (EndCause.EXITED, 0, False)
