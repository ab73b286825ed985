"""Commands and schedules on the original wire: what is canceled, and how it is told."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from anubis.domain.run import RunId, RunState
from anubis.domain.schedule import ScheduleId
from anubis.testing import builders

if TYPE_CHECKING:
    from tests.unit.legacy.conftest import Wire
else:
    Wire = Any

NOWHERE = "00000000-0000-0000-0000-000000000000"
S = RunState


async def test_a_canceled_run_is_told_under_both_ids(wire: Wire) -> None:
    action = await wire.submitted()
    await wire.move(action, S.FETCHING, S.QUEUED, S.STARTING, S.RUNNING)
    answer = await wire.cancel(action)
    dispatched = await wire.status(answer.text)
    await wire.move(action, S.FINISHING, S.CANCELED)

    assert answer.text != action
    assert len(dispatched) == 3
    assert (await wire.status(answer.text))[:3] == dispatched
    assert (await wire.texts(answer.text))[-1] == "Cancel command processed successfully"
    assert (await wire.texts(action))[-1] == "No longer watching benchmark"
    assert "Execution successfully cancelled..." in await wire.texts(action)
    returned = (await wire.status(answer.text))[-1]
    assert returned["type"] == "CMD_RETURN"
    assert returned["payload"]["return_code"] == 0
    assert returned["payload"]["cmd_submit"]["payload"] == {
        "command": "cancel",
        "args": {"target_action_id": action},
    }


@pytest.mark.parametrize("target", ["nothing", NOWHERE])
async def test_what_is_not_there_cannot_be_canceled(wire: Wire, target: str) -> None:
    answer = await wire.cancel(target)

    assert answer.status_code == 200
    assert (await wire.texts(answer.text))[-1] == (
        f"Cancel command failed: No resources found for '{target}'"
    )


async def test_what_belongs_to_another_client_cannot_be_canceled(wire: Wire) -> None:
    action = await wire.submitted()
    answer = await wire.cancel(action, client="other")

    assert (await wire.texts(answer.text, "other"))[-1].startswith("Cancel command failed")
    assert (await wire.store.get(RunId(action))).cancel_requested_at is None


async def test_a_run_that_has_ended_cannot_be_canceled_and_nothing_is_told_of_it(
    wire: Wire,
) -> None:
    action = await wire.submitted()
    await wire.move(action, *builders.PATH_TO_SUCCESS)
    before = await wire.texts(action)
    answer = await wire.cancel(action, cascade=True)

    assert (await wire.texts(answer.text))[-1].startswith("Cancel command failed")
    assert await wire.texts(action) == before


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"payload": {"command": 7}}'])
async def test_a_body_that_is_no_command_is_refused(wire: Wire, body: bytes) -> None:
    answer = await wire.http.request("DELETE", f"/api/job/me/{NOWHERE}", content=body)

    assert answer.status_code == 400
    assert answer.text.startswith("Could Not Parse Submitted Command ")


async def test_a_command_may_not_be_of_any_size(wire: Wire) -> None:
    answer = await wire.http.request("DELETE", "/api/job/me/x", content=b" " * 2_000_000)

    assert answer.status_code == 400


async def test_a_command_that_nobody_knows_is_met_with_silence(wire: Wire) -> None:
    message = wire.message({"command": "dance", "args": {"target_action_id": "x"}})
    answer = await wire.http.request("DELETE", "/api/job/me/x", json=message)

    assert await wire.texts(answer.text) == ["Action received, dispatching delete for <x>"]


async def test_a_schedule_is_told_with_the_runs_it_fires(wire: Wire) -> None:
    action = await wire.submitted(wire.scheduled)
    schedules = wire.service.application.schedules
    run = await schedules.run_now(ScheduleId(action), by="someone")
    await wire.move(run.id, S.FETCHING, S.QUEUED)
    [fired, *_] = await wire.status(run.id)

    assert await wire.texts(action) == [
        "Submission has been successfully received...",
        "Nothing to fetch",
        "Processing scheduled benchmark submission request...",
        f"Scheduled benchmark successfully submitted with job id b-{action}",
        f"Spawning benchmark with action_id: [{run.id}]",
    ]
    assert fired["parent_action_id"] == action
    assert fired["client_id"] == "me"
    assert fired["payload"]["message"] == "Processing benchmark submission request..."
    assert base64.b64decode(fired["payload"]["toml"]["doc"]) == wire.scheduled
    jobs = (await wire.http.get("/api/job/me")).json()["action_ids"]
    assert [job["action_id"] for job in jobs] == [action]


async def test_canceling_a_schedule_pauses_it_and_leaves_its_runs_alone(wire: Wire) -> None:
    action = await wire.submitted(wire.scheduled)
    schedules = wire.service.application.schedules
    run = await schedules.run_now(ScheduleId(action), by="someone")
    answer = await wire.cancel(action)
    again = await wire.cancel(action)

    assert (await schedules.get(ScheduleId(action))).is_paused
    assert (await wire.store.get(run.id)).cancel_requested_at is None
    assert (await wire.texts(action))[-3:] == [
        "Canceling downloads...",
        "No downloads to cancel...",
        "Execution successfully cancelled...",
    ]
    assert (await wire.texts(answer.text))[-1] == "Cancel command processed successfully"
    assert (await wire.texts(again.text))[-1].startswith("Cancel command failed")


async def test_purging_a_schedule_also_stops_its_runs_and_forgets_nothing(wire: Wire) -> None:
    action = await wire.submitted(wire.scheduled)
    schedules = wire.service.application.schedules
    runs = [await schedules.run_now(ScheduleId(action), by="someone") for _ in range(3)]
    await wire.move(runs[0].id, *builders.PATH_TO_SUCCESS)
    before = await wire.status(action)
    await wire.cancel(action, cascade=True)

    found = [await wire.store.get(run.id) for run in runs]
    assert [run.cancel_requested_at is not None for run in found] == [False, True, True]
    assert (await wire.status(action))[: len(before)] == before
    assert await wire.texts(runs[0].id)
