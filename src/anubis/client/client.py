"""The client: one service, as an object with typed calls."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Self

from anubis.client import accounts, calling, handing_in, parsing, plans, watching
from anubis.client.calling import Call, segment
from anubis.client.datasets import DatasetsClient
from anubis.client.fields import Fields
from anubis.client.handing_in import Wishes
from anubis.client.reading import Reader
from anubis.client.schedules import SchedulesClient
from anubis.client.scripts import ScriptsClient
from anubis.client.series import SeriesClient
from anubis.client.tokens import TokensClient
from anubis.client.transport import Manner, Transport, connection
from anubis.client.values import EngineReport, Health, Manifested, Me, Planned, Submitted, Verdict
from anubis.domain.document import Document
from anubis.domain.endpoint import Endpoint
from anubis.domain.errors import NotPossible, RunNotFound, UserError
from anubis.domain.run import Run, RunId
from anubis.stages.presentation.watching import Snapshot

_TAKES_LONG = timedelta(seconds=60)
"""For a purge, which waits up to 20 s for a run to end."""

_ACCEPTED = 202
_LONGEST_USER = 64


class Client(Reader):
    """One service. Use it as a context: ``async with Client("localhost:8080") as client``.

    Raises the errors of ``anubis.domain.errors``: those of the service as they were raised there,
    ServiceUnavailable if it does not answer, UnexpectedAnswer if it is something else.
    """

    def __init__(
        self,
        endpoint: str | Endpoint,
        *,
        token: str | None = None,
        user: str | None = None,
        timeout: timedelta = timedelta(seconds=30),
        verify: bool | Path = True,
        manner: Manner | None = None,
    ) -> None:
        """Open nothing yet.

        ``token`` is the secret of a token; one in the endpoint counts too. ``user`` is who asks,
        for a service without tokens. ``timeout`` is how long an answer may take; those that take
        longer by their nature have their own. ``verify`` says whether the certificate of an
        encrypted endpoint must be good; a path names the file of the authority that signed it.
        """
        place = Endpoint.parse(endpoint) if isinstance(endpoint, str) else endpoint
        manner = manner or Manner()
        headers = _headers(token or place.token, user)
        http = connection(place, headers, verify, manner.transport)
        super().__init__(Transport(place, http, manner, timeout))
        self._http = http
        self.endpoint = place
        self.series = SeriesClient(self._transport)
        self.scripts = ScriptsClient(self._transport)
        self.schedules = SchedulesClient(self._transport)
        self.datasets = DatasetsClient(self._transport)
        self.tokens = TokensClient(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back all connections."""
        await self._http.aclose()

    async def submit(self, document: Document, wishes: Wishes | None = None) -> Submitted:
        """Store a run. Raises DescriptorInvalid with all problems.

        Repeated when the service does not answer: the key in ``wishes``, or one made up here, sees
        to it that this makes one run.
        """
        call = handing_in.call("/runs", document, wishes)
        return await self._submitted(call, None if wishes is None else wishes.key)

    async def resubmit(self, run_id: RunId, wishes: Wishes | None = None) -> Submitted:
        """Store a new run of the descriptor of another, with its code."""
        wanted = wishes or Wishes()
        body = {"engine": wanted.engine, "priority": wanted.priority}
        return await self._submitted(
            calling.post(f"/runs/{segment(run_id)}/resubmit", body), wanted.key
        )

    async def validate(self, document: Document) -> Verdict:
        """Ask the service what it thinks of a descriptor, without submitting it."""
        call = handing_in.call("/descriptors/validate", document)
        fields = await self._fields(dataclasses.replace(call, is_repeatable=True), "answer")
        return Verdict(is_valid=fields.flag("valid"), problems=parsing.problems(fields, "problems"))

    async def plan(self, document: Document, wishes: Wishes | None = None) -> Planned:
        """Ask what the service would make of a descriptor, without submitting it.

        Raises DescriptorInvalid, or UserError that names every field that stands in the way.
        """
        call = handing_in.call("/descriptors/plan", document, wishes)
        fields = await self._fields(dataclasses.replace(call, is_repeatable=True), "answer")
        return Planned(
            plan=plans.plan(fields.part("plan")), warnings=parsing.problems(fields, "warnings")
        )

    async def manifest(self, document: Document, namespace: str = "") -> Manifested:
        """Ask what Kubernetes would get for a run of a descriptor, without submitting it.

        Raises DescriptorInvalid, or UserError that names every field that stands in the way.
        """
        call = handing_in.call("/descriptors/manifest", document)
        query = [*call.query, *calling.query(namespace=namespace or None)]
        call = dataclasses.replace(call, query=query, is_repeatable=True)
        fields = await self._fields(call, "answer")
        return Manifested(
            objects=tuple(fields.objects("objects")),
            notes=tuple(fields.texts("notes")),
            warnings=parsing.problems(fields, "warnings"),
        )

    def watch(self, run_id: RunId) -> AsyncGenerator[Snapshot, None]:
        """Follow a run to its end, over restarts of the service."""
        return watching.watch(self._transport, run_id)

    async def cancel(self, run_id: RunId) -> Run:
        """Ask for a run to be stopped. Raises NotPossible if it has ended."""
        call = Call(method="POST", path=f"/runs/{segment(run_id)}/cancel", done_if=NotPossible)
        reply = await self._transport.send(call)
        return parsing.run(Fields(reply.json(), "run")) if reply.content else await self.get(run_id)

    async def purge(self, run_id: RunId) -> None:
        """Forget a run with all it produced; one that goes on is canceled first."""
        call = Call(
            method="DELETE",
            path=f"/runs/{segment(run_id)}",
            done_if=RunNotFound,
            takes=_TAKES_LONG,
        )
        while (await self._transport.send(call)).status == _ACCEPTED:
            pass  # it has not ended yet: the service waits for a while each time it is asked

    async def engines(self) -> Sequence[EngineReport]:
        """What the engines of the service can do, and how busy they are."""
        fields = await self._ask("/engines", "engines")
        return [accounts.engine(one) for one in fields.parts("engines")]

    async def me(self) -> Me:
        """As whom the service sees us."""
        return accounts.me(await self._ask("/me", "me"))

    async def health(self) -> Health:
        """That the service lives, and which version it is. Needs no token."""
        return accounts.health(await self._ask("/health", "health"))

    async def must_be_ready(self) -> None:
        """Raise ServiceUnavailable if the service cannot do its work now. Needs no token."""
        await self._transport.send(Call(path="/ready"))

    async def _submitted(self, call: Call, key: str | None) -> Submitted:
        fields = await self._fields(handing_in.keyed(call, key), "answer")
        return Submitted(
            run=parsing.run(fields.part("run")), warnings=parsing.problems(fields, "warnings")
        )


def _headers(token: str | None, user: str | None) -> dict[str, str]:
    if secret := (token or "").strip():  # files and variables bring their newlines
        if not re.fullmatch(r"[\x21-\x7e]+", secret):
            raise UserError("the token: expected one word such as anb_…; this one has other signs")
        return {"Authorization": f"Bearer {secret}"}
    if user:
        return {"X-Anubis-User": re.sub(r"[^A-Za-z0-9._@+-]", "-", user)[:_LONGEST_USER]}
    return {}
