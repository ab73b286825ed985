"""What went wrong, in the words of our own error tree: the other side of the API's problems.

An error raised inside the service reaches the caller here as the same class with the same text.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator

import httpx

from anubis.client import parsing
from anubis.client.calling import decoded
from anubis.client.fields import Fields
from anubis.domain import errors
from anubis.domain.endpoint import Endpoint

AGAIN = frozenset({502, 503, 504})
"""Statuses of a service, or of what stands before it, that is not there for the moment."""

TOO_MANY = 429
_REMEDY = "'anubis register {}' keeps a token, ANUBIS_TOKEN gives one for now"
_NO_SUCH_ROUTE = (404, 405)
_SHOWN = 200  # characters of an answer that nobody understands


def of_answer(endpoint: Endpoint, response: httpx.Response) -> errors.AnubisError:
    """The error that an answer of 400 or more tells of. Its content must have been read."""
    if not _is_problem(response):
        return _foreign(endpoint, response)
    if not response.content:  # the answer to a HEAD, which has no words
        return _by_status(endpoint, response.status_code, f"status {response.status_code}")
    problem = Fields(decoded(response.content), "problem")
    kind, detail = problem.text("type"), problem.text("detail")
    found = _KINDS.get(kind.removeprefix("urn:anubis:"))
    if found is errors.DescriptorInvalid:
        problems = [parsing.problem(one) for one in problem.parts("problems")]
        return errors.DescriptorInvalid(problems)
    if found is errors.NotAuthenticated:
        return found(f"{detail} ({_REMEDY.format(endpoint)})")
    if found is errors.TooMuch or response.status_code == TOO_MANY:
        return errors.TooMuch(detail, retry_after=retry_after(response))
    if found is not None:
        return found(detail)
    return _by_status(endpoint, response.status_code, detail)


def named(kind: str, detail: str) -> errors.AnubisError:
    """The error of a name that came within a good answer: of work that failed later."""
    found = _KINDS.get(kind.removeprefix("urn:anubis:"), errors.PermanentError)
    return errors.PermanentError(detail) if found is errors.DescriptorInvalid else found(detail)


def retry_after(response: httpx.Response) -> float | None:
    """The seconds that the service asks us to wait, if it does."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def of_transport(endpoint: Endpoint, error: httpx.HTTPError) -> errors.AnubisError:
    """The error for a call that got no answer at all."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return errors.PermanentError(
                f"the certificate of {endpoint} is not trusted ({cause.verify_message}): name the "
                "file of its authority in ANUBIS_CA_FILE"
            )
        if isinstance(cause, ssl.SSLError):
            return errors.PermanentError(
                f"{endpoint} cannot be spoken to with encryption ({cause.reason}): does it serve "
                "plain http there?"
            )
    if isinstance(error, httpx.DecodingError):
        return errors.UnexpectedAnswer(f"the answer of {endpoint} cannot be decoded: {error}")
    return errors.ServiceUnavailable(
        f"the service at {endpoint} does not answer ({_reason(error)}); see whether it is up and "
        f"whether the address is right{_doubt(endpoint, error)}, or set ANUBIS_ENDPOINT=local to "
        "work on this machine"
    )


def _doubt(endpoint: Endpoint, error: httpx.HTTPError) -> str:
    """A service with TLS hangs up on whoever speaks to it without."""
    hung_up = isinstance(error, httpx.RemoteProtocolError) and not endpoint.is_encrypted
    return f" (https://{endpoint} if it uses TLS)" if hung_up else ""


def _by_status(endpoint: Endpoint, status: int, detail: str) -> errors.AnubisError:
    if (kind := _STATUSES.get(status)) is not None:
        return kind(detail)
    if status in _NO_SUCH_ROUTE:
        return errors.UnexpectedAnswer(
            f"the service at {endpoint} answered something unexpected: it does not know what it "
            f"was asked for ({detail}); is it of an older version than this client?"
        )
    if status >= 500:
        return errors.PermanentError(f"the service at {endpoint} failed: {detail}")
    return errors.UserError(detail)


def _foreign(endpoint: Endpoint, response: httpx.Response) -> errors.AnubisError:
    """An error that was not written by our service, but by another program or a proxy."""
    if response.status_code in AGAIN:
        return errors.ServiceUnavailable(
            f"the service at {endpoint} is not available (status {response.status_code}); try "
            "again later"
        )
    text = " ".join(response.text.split())[:_SHOWN]
    return errors.UnexpectedAnswer(
        f"the service at {endpoint} answered something unexpected (status "
        f"{response.status_code}: {text!r}); is this Anubis?"
    )


def _is_problem(response: httpx.Response) -> bool:
    media_type: str = response.headers.get("Content-Type", "")
    return media_type.split(";")[0].strip() == "application/problem+json"


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno:
            # Names that cannot be resolved have numbers of their own, below zero.
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return str(error) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _below(kind: type[errors.AnubisError]) -> Iterator[type[errors.AnubisError]]:
    yield kind
    for one in kind.__subclasses__():
        if one.__module__ == errors.__name__:
            yield from _below(one)


def _name(kind: type[errors.AnubisError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


_KINDS = {_name(kind): kind for kind in _below(errors.AnubisError)}
"""The name of an error on the wire, and its class."""

_STATUSES: dict[int, type[errors.AnubisError]] = {
    401: errors.NotAuthenticated,
    403: errors.NotAllowed,
    409: errors.NotPossible,
    502: errors.ServiceUnavailable,
    503: errors.ServiceUnavailable,
    504: errors.ServiceUnavailable,
}
"""For problems of HTTP itself, which bring no name of ours."""
