"""What OpenAPI says about answers: their models, examples, headers, and how requests fail.

Models are named here and added to the document once, by ``install``: FastAPI would put problems
under the wrong media type, and would check every answer against its model a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from anubis.entrypoints.api.problems import MEDIA_TYPE as PROBLEM
from anubis.entrypoints.api.resources import examples
from anubis.entrypoints.api.resources.answering import JSON
from anubis.entrypoints.api.resources.models import COMPONENTS, runs
from anubis.entrypoints.api.resources.streaming import EVENT_STREAM
from anubis.entrypoints.api.resources.submissions import TOML

Part: TypeAlias = dict[str, Any]
"""A piece of an OpenAPI document: a foreign shape, made and changed only here."""

Responses: TypeAlias = dict[int | str, Part]

PREFIX: Final = "/api/v1"
REFERENCE: Final = "#/components/schemas/{model}"

ALWAYS: Final = (401, 403, 421, 422, 429, 503)
WITH_BODY: Final = (413, 415)

REASONS: Final[Mapping[int, tuple[str, str, str]]] = {
    401: ("not-authenticated", "A good token is needed.", "a token is needed"),
    403: ("not-allowed", "Who asks may not do this.", "this needs the role admin"),
    404: ("run-not-found", "There is no such thing.", "no run has an id that starts with '0'"),
    409: ("not-possible", "Not possible in its present state.", "the run has already ended"),
    413: ("about:blank", "The body is too large.", "the body is too large"),
    415: ("about:blank", "The body has a media type we do not read.", "Content-Type: found ''"),
    421: ("about:blank", "The request was meant for another host.", "Host: found 'elsewhere'"),
    422: ("request-invalid", "Something in the request is wrong.", "query.limit: found '0', …"),
    429: ("too-much", "Too many requests, runs or streams.", "too many streams are open"),
    503: ("store-unavailable", "Try again in a moment.", "the store did not answer"),
}
"""Per status: the kind of problem, what it means, and an example of its detail."""

TAGS: Final = (
    ("runs", "Submit runs, list them, look at them, cancel and purge them."),
    ("events", "What happened, as pages and as live streams that can be resumed."),
    ("output", "What runs wrote: by range, from the end, by search; and files to download."),
    ("metrics", "What runs measured."),
    ("descriptors", "Check descriptors before they are submitted."),
    ("scripts", "Code that is submitted beside descriptors."),
    ("history", "Many runs together: benchmarks, trends, families."),
    ("schedules", "Descriptors that run again and again."),
    ("datasets", "Data that the service holds for runs: look, fetch, verify, evict."),
    ("engines", "Where runs run, and the queue before them."),
    ("access", "Tokens, who they are for, and the record of what was done."),
    ("service", "The service itself: is it well?"),
)


def answer(
    model: type[BaseModel],
    example: object,
    description: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Responses:
    """An answer in JSON."""
    content = {JSON: {"schema": _reference(model), "example": example}}
    return {status: _described(description, content, headers)}


def maybe(model: type[BaseModel], example: object, description: str) -> Responses:
    """An answer in JSON that may be null."""
    schema = {"anyOf": [_reference(model), {"type": "null"}]}
    return {200: _described(description, {JSON: {"schema": schema, "example": example}}, None)}


def text(description: str, contents: Mapping[str, object], *, status: int = 200) -> Responses:
    """An answer that is no JSON: examples by media type."""
    content = {
        kind: {"schema": {"type": "string"}, "example": example}
        for kind, example in contents.items()
    }
    return {status: _described(description, content, None)}


def any_object(example: object, description: str = "") -> Responses:
    """An answer in JSON of whatever form."""
    content = {JSON: {"schema": {"type": "object"}, "example": example}}
    return {200: _described(description, content, None)}


def stream(description: str, kinds: Sequence[str], example: object) -> Responses:
    """Server-sent events: what each frame of them holds."""
    frame = {
        "type": "object",
        "description": "One frame.",
        "properties": {
            "id": {"type": "string", "description": "The sequence of an event."},
            "event": {"enum": list(kinds), "description": "What the frame holds."},
            "data": {"type": "string", "description": "JSON."},
        },
        "required": ["event", "data"],
    }
    content = {EVENT_STREAM: {"schema": frame, "example": example}}
    return {200: _described(description, content, None)}


def empty(status: int, description: str) -> Responses:
    """An answer without a body."""
    return {status: {"description": description}}


def example(value: object, *, status: int = 200) -> Responses:
    """An example of an answer whose model FastAPI finds itself."""
    return {status: {"content": {JSON: {"example": value}}}}


def problems(*statuses: int) -> Responses:
    """How requests fail here, besides what may happen everywhere."""
    return {status: _problem(status) for status in statuses}


def joined(first: Responses, second: Responses) -> Responses:
    """Two descriptions of the same status as one, with the media types of both."""
    [(status, part)], [(_, other)] = first.items(), second.items()
    return {status: {**part, "content": {**part["content"], **other["content"]}}}


def body_of(model: type[BaseModel], example: object) -> Part:
    """A body in JSON that may be left out."""
    content = {JSON: {"schema": _reference(model), "example": example}}
    return {"requestBody": {"required": False, "content": content}}


def body_example(value: object) -> Part:
    """An example of a body whose model FastAPI finds itself."""
    return {"requestBody": {"content": {JSON: {"example": value}}}}


def descriptor_body(toml: str = examples.TOML) -> Part:
    """A descriptor, as it is or in JSON."""
    example = {"descriptor": toml, "name": "train.toml"}
    as_it_is = {"schema": {"type": "string"}, "example": toml}
    content = {
        JSON: {"schema": _reference(runs.Submission), "example": example},
        **dict.fromkeys(TOML, as_it_is),
    }
    return {"requestBody": {"required": True, "content": content}}


def raw_body(kind: str, example: str) -> Part:
    """A body that is taken as it is."""
    schema = {"type": "string", "format": "binary"}
    content = {kind: {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def _described(description: str, content: Part, headers: Mapping[str, str] | None) -> Part:
    part: Part = {"description": description, "content": content}
    if headers:
        part["headers"] = {
            name: {"description": what, "schema": {"type": "string"}, "required": True}
            for name, what in headers.items()
        }
    return part


def _problem(status: int) -> Part:
    kind, meaning, detail = REASONS[status]
    example = {
        "type": kind if ":" in kind else f"urn:anubis:{kind}",
        "title": kind.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "request_id": "5f2b9c01d3e4a675",
    }
    reference = {"$ref": REFERENCE.format(model="Problem")}
    return {"description": meaning, "content": {PROBLEM: {"schema": reference, "example": example}}}


def _reference(model: type[BaseModel]) -> Part:
    return {"$ref": REFERENCE.format(model=model.__name__)}


def install(app: FastAPI) -> None:
    """Have the app tell everything in its OpenAPI document."""

    def complete() -> Part:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign] # FastAPI's own way to extend it


def _document(app: FastAPI) -> Part:
    document = get_openapi(
        title=app.title,
        version=app.version,
        description="Measure machine-learning systems: one TOML file in, numbers you can trust "
        "out. Errors are `application/problem+json`; every answer names its request id.",
        routes=app.routes,
        tags=[{"name": name, "description": what} for name, what in TAGS],
    )
    for route in app.state.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            _restore_nulls(document["paths"][route.path_format], route)
    for path, operations in document["paths"].items():
        if path.startswith(PREFIX):
            for operation in operations.values():
                _complete(operation)
    components = document.setdefault("components", {})
    components["schemas"] = _schemas(components.get("schemas", {}))
    components["securitySchemes"] = _SCHEMES
    document["security"] = [{}, {"bearer": []}, {"basic": []}]  # none: on loopback without tokens
    return document


def _restore_nulls(operations: Part, route: APIRoute) -> None:
    """Put examples back as they were given: FastAPI leaves out whatever is null in them."""
    for method in route.methods or ():
        operation = operations[method.lower()]
        extra = route.openapi_extra or {}
        _restore(operation.get("requestBody", {}), extra.get("requestBody", {}))
        for status, given in route.responses.items():
            _restore(operation["responses"][str(status)], given)


def _restore(part: Part, given: Part) -> None:
    for kind, body in given.get("content", {}).items():
        part["content"][kind].update(body)


def _complete(operation: Part) -> None:
    """Add what may happen to every request."""
    responses = operation["responses"]
    responses.pop("422", None)  # FastAPI describes its own form, which is not ours
    statuses = [*ALWAYS, *(WITH_BODY if "requestBody" in operation else ())]
    if any(one["in"] == "path" for one in operation.get("parameters", ())):
        statuses.append(404)
    for status in statuses:
        responses.setdefault(str(status), _problem(status))
    for parameter in operation.get("parameters", ()):
        if parameter.get("example", "") is None:  # FastAPI's way to say that there is none
            del parameter["example"]
    for response in responses.values():
        response.setdefault("headers", {})["X-Request-ID"] = _REQUEST_ID
    operation["responses"] = dict(sorted(responses.items()))


def _schemas(given: Part) -> Part:
    """Our components, with those of routes that let FastAPI describe them."""
    _, made = models_json_schema(
        [(model, "serialization") for model in COMPONENTS], ref_template=REFERENCE
    )
    unused = ("HTTPValidationError", "ValidationError")
    kept = {name: schema for name, schema in given.items() if name not in unused}
    return {**kept, **made["$defs"]}


_REQUEST_ID: Final[Part] = {
    "description": "The id of the request, also in the log of the service.",
    "schema": {"type": "string"},
    "required": True,
}

_SCHEMES: Final[Part] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API token."},
    "basic": {"type": "http", "scheme": "basic", "description": "Any name, and the token."},
}
