"""What OpenAPI says is what we answer."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from anubis.entrypoints.api.resources import artifacts, engines, history, metrics, models
from anubis.entrypoints.api.resources.models import datasets as dataset_models
from anubis.entrypoints.api.resources.models import descriptors, events, output, problems, runs
from anubis.entrypoints.api.resources.models import engines as engine_models
from anubis.entrypoints.api.resources.models import history as history_models
from anubis.entrypoints.api.resources.models import metrics as metric_models
from anubis.entrypoints.api.resources.models import plans as plan_models
from anubis.entrypoints.api.resources.models import schedules as schedule_models
from anubis.entrypoints.api.resources.parameters import REPEATABLE
from anubis.stages.presentation import dataset_shapes, plan_shapes, shapes

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any

PAIRS: list[tuple[Any, type[BaseModel]]] = [
    (shapes.RunShape, runs.Run),
    (shapes.OutcomeShape, runs.Outcome),
    (shapes.DemandShape, runs.Demand),
    (shapes.StatusShape, runs.Status),
    (shapes.EventShape, events.Event),
    (shapes.MetricShape, metric_models.Metric),
    (shapes.EnvironmentShape, metric_models.Environment),
    (shapes.ProblemShape, problems.DescriptorProblem),
    (shapes.DocumentShape, descriptors.Descriptor),
    (shapes.ExactLineShape, output.LogLine),
    (shapes.ScheduleShape, schedule_models.Schedule),
    (shapes.ScheduleDetailShape, schedule_models.ScheduleDetails),
    (shapes.ScheduleEventShape, schedule_models.ScheduleEvent),
    (dataset_shapes.DatasetShape, dataset_models.Dataset),
    (dataset_shapes.FetchShape, dataset_models.Fetch),
    (dataset_shapes.FailureShape, dataset_models.Failure),
    (plan_shapes.PlanShape, plan_models.Plan),
    (plan_shapes.UnitShape, plan_models.Unit),
    (plan_shapes.ResourcesShape, plan_models.Resources),
    (plan_shapes.PlacementShape, plan_models.Placement),
    (plan_shapes.TolerationShape, plan_models.Toleration),
    (plan_shapes.ProbeShape, plan_models.Probe),
    (plan_shapes.MountShape, plan_models.Mount),
    (plan_shapes.FetchedShape, plan_models.Fetched),
    (plan_shapes.DefinitionShape, plan_models.Definition),
    (metrics.SeriesShape, metric_models.Series),
    (artifacts.ArtifactShape, output.Artifact),
    (history.GroupShape, history_models.Group),
    (engines.CapacityShape, engine_models.Capacity),
    (engines.EngineShape, engine_models.Engine),
]


@pytest.mark.parametrize(("shape", "model"), PAIRS, ids=lambda pair: pair.__name__)
def test_a_shape_and_its_model_have_the_same_fields(shape: Any, model: type[BaseModel]) -> None:
    assert set(typing.get_type_hints(shape)) == set(model.model_fields)


@pytest.mark.parametrize(("shape", "model"), PAIRS, ids=lambda pair: pair.__name__)
def test_what_may_be_null_in_a_shape_may_be_so_in_its_model(
    shape: Any, model: type[BaseModel]
) -> None:
    def nullable(hint: Any) -> bool:
        return types.NoneType in typing.get_args(hint)

    in_shape = {name for name, hint in typing.get_type_hints(shape).items() if nullable(hint)}
    in_model = {name for name, info in model.model_fields.items() if nullable(info.annotation)}
    assert in_shape == in_model


def document(world: World) -> dict[str, Any]:
    made: dict[str, Any] = world.app.openapi()
    return made


def operations(openapi: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        if path.startswith("/api/v1"):
            for method, operation in methods.items():
                yield f"{method.upper()} {path}", operation


def bodies(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything that has a media type: what is given, and what is answered."""
    yield from operation.get("requestBody", {}).get("content", {}).items()
    for response in operation["responses"].values():
        yield from response.get("content", {}).items()


def test_every_operation_is_named_told_and_sorted(world: World) -> None:
    found = dict(operations(document(world)))
    names = [operation["operationId"] for operation in found.values()]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in document(world)["tags"]}
    for name, operation in found.items():
        assert operation["summary"], name
        assert operation["description"], name
        assert set(operation["tags"]) <= tags, name


def test_every_body_and_parameter_of_every_operation_has_an_example(world: World) -> None:
    missing = []
    for name, operation in operations(document(world)):
        for media_type, body in bodies(operation):
            if "example" not in body and "examples" not in body:
                missing.append(f"{name}: {media_type}")
        for parameter in operation.get("parameters", ()):
            if not parameter["schema"].get("examples"):
                missing.append(f"{name}: {parameter['name']}")
            if not parameter.get("description"):
                missing.append(f"{name}: {parameter['name']} is not described")
    assert missing == []


def test_the_figures_have_an_example(world: World) -> None:
    [(_, body)] = bodies(document(world)["paths"]["/metrics"]["get"])
    assert "BAI_METRICS_" in body["example"]


def test_parameters_may_be_repeated_exactly_where_the_document_shows_a_list(world: World) -> None:
    lists: dict[str, set[str]] = {}
    for path, methods in document(world)["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            if "array" in str(parameter["schema"]):
                lists.setdefault(path, set()).add(parameter["name"])
    assert lists == REPEATABLE


def test_every_example_is_valid(world: World) -> None:
    openapi = document(world)
    for name, operation in operations(openapi):
        for media_type, body in bodies(operation):
            schema = {**body["schema"], "components": openapi["components"]}
            errors = list(Draft202012Validator(schema).iter_errors(body["example"]))
            assert errors == [], f"{name}: {media_type}"


def test_every_operation_says_how_it_fails(world: World) -> None:
    for name, operation in operations(document(world)):
        responses: Mapping[str, Any] = operation["responses"]
        assert {"401", "403", "422", "429", "503"} <= set(responses), name
        if "requestBody" in operation:
            assert {"413", "415"} <= set(responses), name
        if "{" in name:
            assert "404" in responses, name
        for status, response in responses.items():
            if status.startswith("4"):
                assert list(response["content"]) == ["application/problem+json"], name


def test_every_component_is_used_and_every_reference_leads_somewhere(world: World) -> None:
    openapi = document(world)
    text = str(openapi)
    for name in openapi["components"]["schemas"]:
        assert f"#/components/schemas/{name}'" in text, name
    used = {part.partition("'")[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= set(openapi["components"]["schemas"])
    assert {model.__name__ for model in models.COMPONENTS} <= set(openapi["components"]["schemas"])


async def test_the_document_is_served_and_says_how_to_show_a_token(
    world: World, ada: httpx.AsyncClient
) -> None:
    openapi = (await ada.get("/openapi.json")).json()
    assert set(openapi["components"]["securitySchemes"]) == {"bearer", "basic"}
    assert openapi["info"]["title"] == "Anubis"
