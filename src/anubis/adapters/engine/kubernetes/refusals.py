"""What a cluster says instead of doing what it was asked, as errors that say what to do next.

EngineUnavailable     nobody answers, or not now: the same may work later
├── Refused           the cluster has understood, and will not: quota, admission, a wrong object
├── NotPermitted      we lack a right; the message names it
└── Expired           what we go on from is too old: list again
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from anubis.domain.errors import EngineUnavailable

WORDS_BYTES = 2000
"""Messages of admission webhooks and proxies may be whole web pages."""

UNTYPED = "failed to create typed patch object"
"""What an API server answers, with status 500, to an applied object with a field that it does not
know. No other trouble inside of it is the fault of the object.
"""

NOBODY = "system:anonymous"
"""Whom a cluster takes us for if the access has neither certificate nor token."""

_RIGHT = re.compile(r'cannot (\w+) resource "([^"]+)"')


class Refused(EngineUnavailable):
    """The cluster said no, in its own words. Who knows better than to try again later catches it.

    ``status`` is that of HTTP, ``reason`` the cluster's word for programs: ``Invalid``,
    ``Forbidden`` (a quota, or an admission webhook), ``AlreadyExists``, ``Conflict``, ``NotFound``.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)

    def advised(self) -> Refused:
        """The same, with what to do where the cluster's own words do not say it."""
        if self.status != 404 or not str(self).startswith("namespaces "):
            return self
        advice = "make the namespace, or name another with ANUBIS_KUBERNETES_NAMESPACE"
        return Refused(self.status, self.reason, f"{self}; {advice}")

    @property
    def is_quota(self) -> bool:
        """Whether it may work once something else has ended."""
        return self.status == 403 and "exceeded quota" in str(self)


class NotPermitted(EngineUnavailable):
    """Our account lacks a right: to do ``verb`` with ``resource`` (``create``, ``pods/exec``)."""

    def __init__(self, verb: str, resource: str, message: str) -> None:
        self.verb = verb
        self.resource = resource
        super().__init__(message)


class Expired(EngineUnavailable):
    """The moment from which to go on is forgotten already."""


def told(body: bytes) -> Mapping[str, Any]:
    """The Status object in an answer; what is none (of a proxy) becomes its message."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if isinstance(status, dict):
        return status
    return {"message": body[:WORDS_BYTES].decode(errors="replace").strip()}


def refusal(code: int, status: Mapping[str, Any], where: str) -> EngineUnavailable:
    """The error for an answer that is none; ``where`` names the cluster for people."""
    reason = str(status.get("reason") or "")
    words = str(status.get("message") or reason or f"HTTP {code}")[:WORDS_BYTES]
    if code == 401 or (code == 403 and f'"{NOBODY}"' in words):
        return EngineUnavailable(
            f"{where} does not know us ({words}): renew the credentials, and see that "
            "`kubectl get pods` works with the same access"
        )
    if code == 403 and (right := _RIGHT.search(words)):
        verb, resource = right.groups()
        return NotPermitted(
            verb, resource, f"{where} does not permit us to {verb} {resource}: {words}"
        )
    if code == 410:
        return Expired(f"{where} has forgotten where we were: {words}")
    if code == 500 and UNTYPED in words:
        return Refused(422, "Invalid", words)
    if code == 429 or code >= 500:
        return EngineUnavailable(f"{where} cannot answer now (HTTP {code}): {words}")
    return Refused(code, reason, words)
