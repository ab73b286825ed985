"""What schedulers, autoscalers and nodes say, as people read it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.engine_kubernetes import recordings

from anubis.adapters.engine.kubernetes import explaining, phrasing, unscheduled
from anubis.adapters.engine.kubernetes.explaining import Happening
from anubis.adapters.engine.kubernetes.stances import Failed, Running, Wait, Waiting
from anubis.adapters.engine.kubernetes.viewing import Asks
from anubis.domain.observation import EndCause

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
GPUS = Asks(
    resources=(("nvidia.com/gpu", "4"), ("memory", "8589934592")),
    labels=("node.kubernetes.io/instance-type=p3.8xlarge",),
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            (
                "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match"
                " Pod's"
                " node affinity/selector. preemption: 0/3 nodes are available: 1 No preemption"
                " victims"
                " found for incoming pod, 2 Preemption is not helpful for scheduling."
            ),
            "no node with node.kubernetes.io/instance-type=p3.8xlarge has 4 nvidia.com/gpu free",
        ),
        (
            (
                "0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are"
                " available:"
                " 3 Preemption is not helpful for scheduling."
            ),
            "no node has 8 GiB memory, not even an empty one",
        ),
        (
            "0/2 nodes are available: 2 Insufficient cpu.",
            "no node has enough cpu free",
        ),
        (
            (
                "0/4 nodes are available: 1 node(s) had untolerated taint"
                " {node-role.kubernetes.io/control-plane: }, 3 node(s) didn't match Pod's node"
                " affinity/selector."
            ),
            (
                "nodes have taints that it does not tolerate"
                " (node-role.kubernetes.io/control-plane);"
                " other nodes do not have node.kubernetes.io/instance-type=p3.8xlarge"
            ),
        ),
        (
            "0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable.",
            "no node has room for one more pod; nodes are closed for new pods (cordoned)",
        ),
        (
            "0/2 nodes are available: 2 node(s) had volume node affinity conflict.",
            "node(s) had volume node affinity conflict",
        ),
        ("no nodes available to schedule pods", "the cluster has no nodes"),
        ("", "the scheduler gives no reason"),
        ("0/1 nodes are available: ", "the scheduler gives no reason"),
        ("running PreBind plugin: timeout", "running PreBind plugin: timeout"),
    ],
)
def test_why_no_node_takes_a_pod_names_the_resource_and_the_label(said: str, told: str) -> None:
    assert unscheduled.told(said, GPUS) == told


def test_how_many_nodes_gave_a_reason_is_no_news() -> None:
    one = "0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods."
    two = "0/9 nodes are available: 3 Insufficient cpu, 6 Too many pods."
    assert unscheduled.told(one, GPUS) == unscheduled.told(two, GPUS)


def waiting(why: Wait = Wait.NODE, detail: str = "") -> Waiting:
    """For four minutes."""
    lasting = " for more than 4 min"
    return Waiting(why=why, since=NOON, what="waiting", lasting=lasting, detail=detail)


def happening(reason: str, message: str, minutes: int = 0, source: str = "") -> Happening:
    """So long after noon."""
    at = NOON + minutes * MINUTE
    return Happening(reason=reason, message=message, last_at=at, source=source)


def told(standing: Waiting | Failed, *events: Happening) -> str:
    """The message with these events."""
    found = explaining.explained(standing, events, NOON + 4 * MINUTE)
    assert isinstance(found, Waiting | Failed)
    return found.message


def test_an_autoscaler_that_adds_a_node_is_waited_for_and_for_how_long() -> None:
    event = happening("TriggeredScaleUp", "pod triggered scale-up: [{gpus 1->2 (max: 8)}]")
    words = told(waiting(detail="no node has 4 nvidia.com/gpu free"), event)
    assert words == (
        "waiting for the autoscaler for more than 4 min: pod triggered scale-up:"
        " [{gpus 1->2 (max: 8)}]; no node has 4 nvidia.com/gpu free"
    )


def test_an_autoscaler_that_adds_none_says_why_in_the_same_order_each_time() -> None:
    one = happening("NotTriggerScaleUp", "pod didn't trigger scale-up: 2 b, 1 max size reached")
    two = happening("NotTriggerScaleUp", "pod didn't trigger scale-up: 3 max size reached, 1 b")
    assert told(waiting(), one) == told(waiting(), two)
    assert told(waiting(), one) == (
        "waiting for more than 4 min: the autoscaler adds no node: b, max size reached"
    )


def test_karpenter_is_an_autoscaler() -> None:
    event = happening("Nominated", "Pod should schedule on: nodeclaim/gpus-x7", source="karpenter")
    assert told(waiting(), event).startswith("waiting for the autoscaler for more than 4 min: Pod")
    refusal = happening("FailedScheduling", "incompatible with nodepool a", source="karpenter")
    assert told(waiting(), refusal).endswith("adds no node: incompatible with nodepool a")


def test_the_newest_word_of_an_autoscaler_counts() -> None:
    old = happening("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 a", minutes=1)
    new = happening("TriggeredScaleUp", "pod triggered scale-up: b", minutes=2)
    assert told(waiting(), new, old).startswith("waiting for the autoscaler")


def test_an_autoscaler_that_did_not_help_is_named_at_the_end() -> None:
    end = Failed(cause=_failed().cause, message="no room", at=NOON, why=Wait.NODE)
    event = happening("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max size reached")
    assert told(end, event) == (
        "no room; the autoscaler: pod didn't trigger scale-up: 1 max size reached"
    )


def _failed() -> Failed:
    found = recordings.moment("image_never").stand()
    assert isinstance(found, Failed)
    return found


def test_of_several_words_about_volumes_the_one_that_names_what_is_missing_counts() -> None:
    named = happening("FailedMount", 'MountVolume.SetUp failed for volume "f": no secret "s"')
    general = happening("FailedMount", "Unable to attach or mount volumes: unmounted", minutes=1)
    assert told(waiting(Wait.PREPARATION), general, named).endswith('no secret "s"')
    assert told(waiting(Wait.PREPARATION), general).endswith("volumes: unmounted")


def test_an_image_that_came_too_late_has_the_words_of_the_registry() -> None:
    end = dataclasses.replace(_failed(), message="the image a/b:1 could not be pulled in time")
    words = 'Failed to pull image "a/b:1": failed to pull and unpack image "a/b:1": no such host'
    events = (happening("Failed", words), happening("Failed", "Error: ErrImagePull", minutes=1))
    assert told(end, *events) == "the image a/b:1 could not be pulled in time: no such host"


def test_a_sandbox_that_fails_again_and_again_reads_the_same() -> None:
    words = 'failed to setup network for sandbox "{}": no address'
    ids = ("0123456789abcdef" * 4, "fedcba9876543210" * 4)
    one, two = (happening("FailedCreatePodSandBox", words.format(each)) for each in ids)
    assert told(waiting(Wait.PREPARATION), one) == told(waiting(Wait.PREPARATION), two)


def test_a_node_that_is_not_ready_is_told() -> None:
    event = happening("NodeNotReady", "Node is not ready")
    assert told(waiting(Wait.ADMISSION), event) == "waiting for more than 4 min: Node is not ready"


def test_events_that_explain_something_else_change_nothing() -> None:
    event = happening("FailedMount", "something old")
    assert explaining.explained(waiting(detail="a"), [event], NOON) == waiting(detail="a")
    running = Running(since=NOON)
    assert explaining.explained(running, [event], NOON) == running


def test_events_are_asked_for_only_where_they_may_say_more() -> None:
    later = NOON + timedelta(seconds=5)
    assert not explaining.events_wanted(waiting(), NOON)
    assert explaining.events_wanted(waiting(), later)
    assert not explaining.events_wanted(waiting(Wait.DATA), later)
    assert not explaining.events_wanted(Running(since=NOON), later)
    assert explaining.events_wanted(_failed(), later)
    assert not explaining.events_wanted(dataclasses.replace(_failed(), why=None), later)


def test_events_of_both_apis_are_read() -> None:
    old = {"reason": "A", "message": "m", "count": 3, "lastTimestamp": "2026-01-01T12:00:00Z"}
    assert explaining.happening({**old, "source": {"component": "karpenter"}}) == Happening(
        reason="A", message="m", count=3, last_at=NOON, source="karpenter"
    )
    series = {"count": 4, "lastObservedTime": "2026-01-01T12:00:00.000000Z"}
    new = {"reason": "A", "note": "m", "series": series, "reportingComponent": "karpenter"}
    assert explaining.happening(new) == Happening(
        reason="A", message="m", count=4, last_at=NOON, source="karpenter"
    )


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (
            "rpc error: code = NotFound desc = a\n  b",
            "a b",
        ),
        ("GET https://s3.example/x?X-Amz-Signature=abc: 403", "GET https://s3.example/x?... 403"),
        ("https://me:secret@registry.example/x", "https://registry.example/x"),
        ("image@sha256:" + "ab" * 32, "image@sha256:" + "ab" * 32),
        ("x" * 2000, "x" * 1000 + "..."),
    ],
)
def test_foreign_words_are_one_line_without_secrets(words: str, read: str) -> None:
    assert phrasing.plain(words) == read


def test_how_long_something_lasts_is_rarely_news() -> None:
    hours = [phrasing.lasting(timedelta(seconds=second)) for second in range(0, 7200, 5)]
    assert list(dict.fromkeys(hours)) == [
        "",
        *(f" for more than {step}" for step in ("1 min", "2 min", "4 min", "8 min", "15 min")),
        " for more than 30 min",
        " for more than 1 h",
    ]


SECURITY = (
    'Error creating: pods "run-x7" is forbidden: violates PodSecurity "baseline:latest": hostPath'
    ' volumes (volume "output")'
)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (SECURITY, "label the namespace pod-security.kubernetes.io/enforce=privileged"),
        (
            'Error creating: pods "run-" is forbidden: serviceaccount "b" not found',
            'serviceaccount "b" not found',
        ),
        (
            'Error creating: admission webhook "images.example" denied the request: no such tag',
            "denied the request: no such tag",
        ),
    ],
)
def test_a_pod_that_the_cluster_forbids_is_not_waited_for_as_long_as_room(
    said: str, words: str
) -> None:
    event, wait = happening("FailedCreate", said, minutes=1), waiting(Wait.POD)
    early = explaining.explained(wait, [event], NOON + 2 * MINUTE - timedelta(seconds=1))
    assert isinstance(early, Waiting), "somebody may be about to mend it"
    assert words in early.message
    ends = [explaining.explained(wait, [event], NOON + n * MINUTE) for n in (2, 30)]
    assert ends[0] == ends[1], "the end does not depend on when one looks"
    assert isinstance(ends[0], Failed)
    assert (ends[0].cause, ends[0].at) == (EndCause.NOT_STARTED, NOON + 2 * MINUTE)
    assert words in ends[0].message


@pytest.mark.parametrize(
    "said",
    [
        'Error creating: pods "a" is forbidden: exceeded quota: small, requested: cpu=1',
        'Error creating: pods "a" is forbidden: status unknown for quota: small',
        'Error creating: Internal error occurred: failed calling webhook "a": connection refused',
    ],
)
def test_what_may_pass_by_itself_is_waited_for(said: str) -> None:
    event = happening("FailedCreate", said, minutes=1)
    found = explaining.explained(waiting(Wait.POD), [event], NOON + 30 * MINUTE)
    assert isinstance(found, Waiting)


def test_the_newest_word_about_a_pod_counts() -> None:
    quota = happening("FailedCreate", 'pods "a" is forbidden: exceeded quota: small', minutes=2)
    found = explaining.explained(
        waiting(Wait.POD), [quota, happening("FailedCreate", SECURITY, minutes=1)], NOON + HOUR
    )
    assert isinstance(found, Waiting)
