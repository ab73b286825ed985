"""A service made of a function, and shapes as the real one answers them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx

from anubis.client import Client, Manner
from anubis.domain.run import Run
from anubis.stages.presentation import shapes
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock

Answer = httpx.Response | Exception
Handler = Callable[[httpx.Request], Answer]


class Impatient(ManualClock):
    """A clock by which every pause is over at once, and remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(timedelta(seconds=seconds))


class Service:
    """Answers with what a test lined up; the last answer is given for ever."""

    def __init__(self, *answers: Answer | Handler) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.clock = Impatient()

    def client(self, **given: Any) -> Client:
        manner = Manner(clock=self.clock, transport=httpx.MockTransport(self.answer))
        return Client("service.test:8080", manner=manner, **given)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if not isinstance(answer, httpx.Response | Exception):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refused() -> Exception:
    return httpx.ConnectError("All connection attempts failed")


def problem(status: int, name: str, detail: str, **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {
        "type": f"urn:anubis:{name}",
        "title": name,
        "status": status,
        "detail": detail,
        "request_id": "r",
        **more,
    }
    content = json.dumps(body).encode()
    headers = {"Content-Type": "application/problem+json", **headers}
    return httpx.Response(status, content=content, headers=headers)


def run_shape(run: Run | None = None) -> shapes.RunShape:
    return shapes.run_shape(run or builders.a_run(), NOON)


def a_run_answer(run: Run | None = None) -> httpx.Response:
    return httpx.Response(200, json=run_shape(run))
