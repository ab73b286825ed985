"""With how much patience pods are deleted that nobody needs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from anubis.adapters.engine.kubernetes import recording, removing
from anubis.adapters.engine.kubernetes.recorder import specifying, stopping
from anubis.testing.clock import NOON

ASKED = {"deletionTimestamp": NOON.isoformat()}


@pytest.mark.parametrize(
    ("metadata", "grace"),
    [
        ({}, 1),
        ({**ASKED, "deletionGracePeriodSeconds": 86400}, 1),
        ({**ASKED, "deletionGracePeriodSeconds": 1}, None),
        ({**ASKED, "deletionGracePeriodSeconds": 0}, None),
    ],
    ids=["of nobody", "with patience, by somebody", "by us", "by force"],
)
def test_a_pod_is_asked_once_to_go_soon(metadata: dict[str, object], grace: int | None) -> None:
    assert removing._grace(metadata, NOON + timedelta(seconds=30)) == grace


def test_a_pod_whose_node_says_nothing_is_deleted_without_it() -> None:
    metadata = {**ASKED, "deletionGracePeriodSeconds": 1}
    assert removing._grace(metadata, NOON + timedelta(seconds=61)) == 0


def test_a_recorder_is_released_where_it_looks_for_that() -> None:
    assert f"{specifying.Places().record}/{stopping.RELEASED}" == recording.RELEASED
