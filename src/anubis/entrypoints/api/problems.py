"""How errors look on the wire: ``application/problem+json`` (RFC 9457), always with the request id.

| error | status |
|---|---|
| RunNotFound, ScheduleNotFound, TokenNotFound, DatasetNotFound | 404 |
| RunAmbiguous, ScheduleAmbiguous, NotPossible | 409 |
| DescriptorInvalid, other UserErrors, malformed requests | 422 |
| NotAuthenticated | 401 |
| NotAllowed | 403 |
| TooMuch | 429 |
| TemporaryError | 503 |
| PermanentError, defects | 500 |
"""

from __future__ import annotations

import itertools
import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import NotRequired, TypedDict

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route

from anubis.domain import errors
from anubis.stages.presentation import shapes

MEDIA_TYPE = "application/problem+json"

STATUS: Mapping[type[errors.AnubisError], int] = {
    errors.RunNotFound: 404,
    errors.ScheduleNotFound: 404,
    errors.TokenNotFound: 404,
    errors.DatasetNotFound: 404,
    errors.RunAmbiguous: 409,
    errors.ScheduleAmbiguous: 409,
    errors.NotPossible: 409,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.TooMuch: 429,
    errors.UserError: 422,
    errors.TemporaryError: 503,
    errors.AnubisError: 500,
}
"""The status of an error: that of the nearest class above it."""

DEFECT = "an internal error: the log of the service tells more under this request id"


MOST_SHOWN = 20
"""Of what is wrong with a request, so much is told: whoever sends more should begin with these."""

LONGEST_SHOWN = 200
"""Characters of what was found."""


class FieldShape(TypedDict):
    """Something wrong with a request."""

    field: str
    found: str
    expected: str


class ProblemBody(TypedDict):
    """A problem document."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    problems: NotRequired[Sequence[shapes.ProblemShape | FieldShape]]


def install(app: FastAPI, routes: Iterable[BaseRoute] = ()) -> None:
    """Have every error of this app, which has these routes, answered as a problem."""
    app.state.routes = [route for route in routes if isinstance(route, Route)]
    app.add_exception_handler(errors.AnubisError, _explained)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)


def answer(error: errors.AnubisError, request_id: str) -> Response:
    """The problem document of an error that we explain in words."""
    kind = next(one for one in type(error).__mro__ if one in STATUS)
    status = STATUS[kind]
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()
    body = ProblemBody(
        type=f"urn:anubis:{name}",
        title=name.replace("-", " ").capitalize(),
        status=status,
        detail=str(error),
        request_id=request_id,
    )
    if isinstance(error, errors.DescriptorInvalid):
        body["problems"] = [shapes.problem_shape(problem) for problem in error.problems]
    return _response(body, _headers(error))


def plain(status: int, detail: str, request_id: str) -> Response:
    """A problem that HTTP has a name for."""
    title = HTTPStatus(status).phrase
    body = ProblemBody(
        type="about:blank", title=title, status=status, detail=detail, request_id=request_id
    )
    return _response(body, {})


def _headers(error: errors.AnubisError) -> Mapping[str, str]:
    if isinstance(error, errors.NotAuthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, errors.TooMuch) and error.retry_after is not None:
        return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    if isinstance(error, errors.TemporaryError):
        return {"Retry-After": "1"}
    return {}


def _response(body: ProblemBody, headers: Mapping[str, str]) -> Response:
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(text, body["status"], dict(headers), MEDIA_TYPE)


async def _explained(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.AnubisError)
    return answer(error, _id(request))


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [_field(one) for one in error.errors()[:MOST_SHOWN]]
    sentences = "; ".join(
        f"{one['field']}: found {one['found']}, expected {one['expected']}" for one in found
    )
    body = ProblemBody(
        type="urn:anubis:request-invalid",
        title="Request invalid",
        status=422,
        detail=sentences,
        request_id=_id(request),
        problems=found,
    )
    return _response(body, {})


def _field(error: Mapping[str, object]) -> FieldShape:
    place = error.get("loc", ())
    assert isinstance(place, tuple | list)
    # Of what is missing, the library gives what it is missing from.
    found = "nothing" if error.get("type") == "missing" else _shown(error.get("input"))
    return FieldShape(
        field=".".join(str(part)[:LONGEST_SHOWN] for part in place),
        found=found if len(found) <= LONGEST_SHOWN else f"{found[:LONGEST_SHOWN]}…",
        expected=_expected(str(error.get("msg", ""))),
    )


def _expected(message: str) -> str:
    """What the validation library says, so that it can be read after the word "expected"."""
    for said, meant in _WORDINGS:
        if message.startswith(said):
            return meant + message.removeprefix(said)
    return message


_WORDINGS = (
    ("Input should be ", ""),
    ("Value error, ", ""),
    ("String should have ", "text with "),
    ("List should have ", "a list with "),
    ("String should match pattern ", "text like "),
    ("Field required", "a value: it is required"),
    ("Extra inputs are not permitted", "nothing: there is no such name"),
    ("Invalid JSON: ", "valid JSON: "),
)


def _shown(value: object) -> str:
    """The beginning of a value. Writing out all of it could take longer than all the rest."""
    if isinstance(value, str | bytes):
        return repr(value[: LONGEST_SHOWN + 1])
    return _SHORT.repr(value)


class _Short(reprlib.Repr):
    """Looks at no more than it shows; the one of the library sorts all keys first."""

    def repr_dict(self, x: Mapping[object, object], level: int) -> str:
        """The first few of them."""
        return super().repr_dict(dict(itertools.islice(x.items(), self.maxdict + 1)), level)


_SHORT = _Short()
_SHORT.maxlist = _SHORT.maxdict = 20
_SHORT.maxstring = _SHORT.maxlong = LONGEST_SHOWN


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # 400 is FastAPI's word for a body that is not even text; ours is the same for all mistakes.
    status = 422 if error.status_code == 400 else error.status_code
    response = plain(status, str(error.detail), _id(request))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    if status == 405:
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """What a path can be asked for. Starlette names only the methods of the first route."""
    path, routes = request.scope["path"], request.app.state.routes
    exact = [route for route in routes if route.path == path]
    matching = exact or [route for route in routes if route.path_regex.match(path)]
    return {method for route in matching for method in route.methods or ()}


def _id(request: Request) -> str:
    return str(request.state.request_id)
