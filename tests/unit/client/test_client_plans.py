"""What a service says about plans is read field by field."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from anubis.domain import plan as plans
from anubis.domain.demand import Demand
from anubis.domain.document import Document
from anubis.domain.errors import UnexpectedAnswer
from anubis.stages.presentation.plan_shapes import PlanShape, plan_shape

from .given import Service

GOLDEN = Path(__file__).parents[1] / "planning" / "golden"
DOCUMENT = Document(name="d.toml", directory="", content=b"")


def shape(name: str) -> PlanShape:
    """A plan of those that planning is held against."""
    text = (GOLDEN / f"{name}.json").read_text("utf-8").replace("|", "\\u0000")
    return plan_shape(plans.from_json(text), "docker", Demand(cpus=1.5))


@pytest.mark.parametrize(
    "name",
    [
        "single_node.isolated",
        "inference.isolated",
        "mxnet_parameter_server.isolated",
        "machines_single.cluster",
        "machines_inference.cluster",
    ],
)
async def test_a_plan_arrives_as_it_was_sent(name: str) -> None:
    service = Service(httpx.Response(200, json={"plan": shape(name), "warnings": []}))
    async with service.client() as client:
        planned = await client.plan(DOCUMENT)
    assert json.dumps(planned.plan, sort_keys=True) == json.dumps(shape(name), sort_keys=True)
    assert service.requests[0].url.path == "/api/v1/descriptors/plan"


async def test_a_plan_that_is_none_is_named() -> None:
    odd = shape("single_node.isolated")
    odd["units"][0]["ports"] = ["80"]  # type: ignore[list-item]  # the point of the test
    service = Service(httpx.Response(200, json={"plan": odd, "warnings": []}))
    async with service.client() as client:
        with pytest.raises(UnexpectedAnswer, match="ports: found '80', expected a whole number"):
            await client.plan(DOCUMENT)
