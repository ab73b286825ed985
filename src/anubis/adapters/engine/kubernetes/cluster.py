"""A cluster, through its API: the calls that we need, on plain objects.

Everything is in one namespace: the one of the settings, of the context, of our own pod, or
``default``. Objects are applied by the server (server-side apply) under our name, so that applying
the same twice is the same as once. What is not there is None. Raises EngineUnavailable, or one of
its kinds from ``refusals`` where more can be said: Refused, NotPermitted, Expired.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal

from anubis.adapters.engine.kubernetes import executing, kinds, refusals
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.calling import (
    Answer,
    Asked,
    Calling,
    Query,
    json_lines,
)
from anubis.adapters.engine.kubernetes.kinds import Applied, Found, Kind, Listing, Owner

FIELD_MANAGER = "anubis"
PAGE = 500  #: objects in one answer, as many as kubectl asks for
LOG_LINES = 2000  #: of which the last bytes are kept
LOG_SILENCE_SECONDS = 30.0
KNOWN_SECONDS = 60.0  #: how long we believe what kinds the cluster has: operators come and go
WATCH_GRACE_SECONDS = 15.0
HEARTBEAT_SECONDS = 20.0  #: after which a stream whose peer is gone is noticed

Propagation = Literal["Background", "Foreground", "Orphan"]


class Deleted(enum.IntEnum):
    """What became of an object that the cluster was asked to delete."""

    WAS_GONE = 0
    GONE = 1
    LEAVES = 2  #: its programs have time to end, or a controller holds it by a finalizer


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """Who the cluster is."""

    version: str  #: ``v1.36.3``
    platform: str  #: ``linux/amd64``


class Cluster:
    """One cluster. Costs nothing until the first call, which reads the access and connects."""

    def __init__(self, access: Access) -> None:
        self._calling = Calling(access)
        self._known: dict[tuple[str, str], tuple[float, bool]] = {}

    @property
    def calls(self) -> collections.Counter[tuple[str, str]]:
        """How many requests were sent, by verb and kind: ``("apply", "Job")``."""
        return self._calling.calls

    @property
    def namespace(self) -> str:
        """The namespace that we work in. Known after ``connect``, or any call."""
        return self._calling.entrance.namespace

    @property
    def server(self) -> str:
        """The address of the API, without anything secret. Known after ``connect``."""
        return self._calling.entrance.server

    @property
    def words(self) -> str:
        """The cluster, named for people: address, and where the access comes from."""
        return self._calling.words

    async def connect(self) -> None:
        """Read the access. Raises EngineUnavailable for one that cannot be used; asks nothing of
        the cluster. Every call does this by itself.
        """
        await self._calling.open()

    async def close(self) -> None:
        """Let go of all connections, also of those of streams."""
        await self._calling.close()

    async def version(self) -> Version:
        """Who answers: the first thing to ask."""
        content = (await self._want("get", "Version", "GET", "/version")).content()
        return Version(
            version=str(content.get("gitVersion")), platform=str(content.get("platform"))
        )

    async def apply(
        self, manifest: Mapping[str, object], *, dry_run: bool = False, owner: Owner | None = None
    ) -> Applied:
        """Make an object so, whether it is there or not. Unknown fields are refused.

        ``dry_run``: the cluster checks everything, and does nothing. ``owner``: with which it is to
        be deleted. Raises Refused with the cluster's words.
        """
        kind = kinds.kind_of(manifest)
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        if owner is not None:
            metadata = {**metadata, "ownerReferences": [owner.reference()]}
            manifest = {**manifest, "metadata": metadata}
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        answer = await self._calling.want(
            Asked(
                verb="apply",
                kind=kind.kind,
                method="PATCH",
                path=await self._path(kind, str(metadata["name"])),
                query=[*query, *([("dryRun", "All")] if dry_run else [])],
                body=manifest,
                content_type="application/apply-patch+yaml",  # JSON is YAML
            )
        )
        return Applied(object=answer.content(), created=answer.status == 201)

    async def create(self, manifest: Mapping[str, object]) -> Found:
        """Make an object that must not be there yet. Raises Refused (409, AlreadyExists)."""
        kind = kinds.kind_of(manifest)
        path = await self._path(kind)
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        asked = Asked(
            verb="create", kind=kind.kind, method="POST", path=path, query=query, body=manifest
        )
        content: Found = (await self._calling.want(asked)).content()
        return content

    async def replace(self, manifest: Mapping[str, object]) -> Found:
        """Write an object that was read, unless somebody else wrote it since: its
        ``metadata.resourceVersion`` must still be the present one. Raises Refused (409, Conflict).
        """
        kind = kinds.kind_of(manifest)
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        assert metadata.get("resourceVersion"), "without it the last writer wins"
        path = await self._path(kind, str(metadata["name"]))
        query = [("fieldManager", FIELD_MANAGER)]
        asked = Asked(
            verb="update", kind=kind.kind, method="PUT", path=path, query=query, body=manifest
        )
        content: Found = (await self._calling.want(asked)).content()
        return content

    async def adopt(self, kind: Kind, name: str, owner: Owner) -> bool:
        """Have an object deleted with another. False: it is not there."""
        asked = Asked(
            verb="patch",
            kind=kind.kind,
            method="PATCH",
            path=await self._path(kind, name),
            query=[("fieldManager", FIELD_MANAGER)],
            body={"metadata": {"ownerReferences": [owner.reference()]}},
            content_type="application/merge-patch+json",
        )
        return self._unless_gone(await self._calling.call(asked)) is not None

    async def get(self, kind: Kind, name: str) -> Found | None:
        """An object, if there is one of this name."""
        asked = Asked(verb="get", kind=kind.kind, method="GET", path=await self._path(kind, name))
        answer = self._unless_gone(await self._calling.call(asked))
        if answer is None:
            return None
        content: Found = answer.content()
        return content

    async def list(self, kind: Kind, selector: str = "", *, fields: str = "") -> Listing:
        """All objects of a kind whose labels are so (``a=b,c!=d``), at one moment."""
        try:
            return await self._listed(kind, selector, fields, PAGE)
        except refusals.Expired:
            # It took so long that the cluster forgot the moment of the first page.
            return await self._listed(kind, selector, fields, 0)

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        grace: int | None = None,
        propagation: Propagation = "Background",
        uid: str = "",
    ) -> Deleted:
        """Delete an object, and what it owns: after it (Background), or before (Foreground).

        ``grace``: seconds for its programs to end, None: as the object says. ``uid``: only if it
        is still this one.
        """
        asked = Asked(
            verb="delete",
            kind=kind.kind,
            method="DELETE",
            path=await self._path(kind, name),
            body=_options(grace, propagation, uid),
        )
        answer = self._unless_gone(await self._calling.call(asked))
        return Deleted.WAS_GONE if answer is None else _deleted(answer.content())

    def exec(
        self, pod: str, container: str, command: Sequence[str]
    ) -> contextlib.AbstractAsyncContextManager[executing.Output]:
        """Run a command in a container: ``async with`` gives its output as it comes. See Output.

        Needs the rights to ``get`` and ``create`` ``pods/exec``.
        """
        return self._executing(pod, container, command)

    async def log(self, pod: str, container: str, tail_bytes: int) -> bytes:
        """The end of what a container wrote, as far as its node still has it; often nothing."""
        query = [("container", container), ("tailLines", str(LOG_LINES))]
        path = await self._path(kinds.POD, pod, "log")
        asked = Asked(
            verb="get", kind="Pod/log", method="GET", path=path, query=query, accept="*/*"
        )
        kept = b""
        try:
            async with self._calling.stream(asked, LOG_SILENCE_SECONDS) as chunks:
                async for chunk in chunks:
                    kept = (kept + chunk)[-tail_bytes:]
        except refusals.Refused as error:
            if error.status not in (400, 404):  # 400: the container has not begun
                raise
        return kept

    async def has_api(self, group_version: str, plural: str) -> bool:
        """Whether the cluster knows a kind: ``kubeflow.org/v2beta1``, ``mpijobs``."""
        asked_at, known = self._known.get((group_version, plural), (0.0, False))
        if asked_at and time.monotonic() - asked_at < KNOWN_SECONDS:
            return known
        path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        asked = Asked(verb="get", kind="APIResourceList", method="GET", path=path)
        answer = self._unless_gone(await self._calling.call(asked))
        names = [one["name"] for one in answer.content()["resources"]] if answer else []
        self._known[group_version, plural] = (time.monotonic(), plural in names)
        return plural in names

    async def can_i(self, verb: str, kind: Kind, part: str = "") -> bool:
        """Whether we have a right in our namespace; ``part``: ``exec`` or ``log`` of pods."""
        await self.connect()
        wanted = {"verb": verb, "group": kind.group, "resource": kind.plural, "subresource": part}
        if kind.is_namespaced:
            wanted["namespace"] = self.namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = await self._want("create", "SelfSubjectAccessReview", "POST", path, review)
        return bool(answer.content()["status"].get("allowed"))

    def watching(
        self, kind: Kind, selector: str, version: str, seconds: int
    ) -> contextlib.AbstractAsyncContextManager[AsyncGenerator[Found]]:
        """The changes since a moment, as the API tells them, for at most so many seconds. Who wants
        to follow uses ``following.Watch``, which knows what may go wrong.
        """
        return self._watching(kind, selector, version, seconds)

    @contextlib.asynccontextmanager
    async def _watching(
        self, kind: Kind, selector: str, version: str, seconds: int
    ) -> AsyncGenerator[AsyncGenerator[Found]]:
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("labelSelector", selector),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds)),
        ]
        path = await self._path(kind)
        asked = Asked(verb="watch", kind=kind.kind, method="GET", path=path, query=query)
        # The server ends a watch by itself; one that outlasts this has nobody at its other end.
        async with (
            self._calling.stream(asked, seconds + WATCH_GRACE_SECONDS) as chunks,
            contextlib.aclosing(json_lines(chunks)) as changes,
        ):
            yield changes

    @contextlib.asynccontextmanager
    async def _executing(
        self, pod: str, container: str, command: Sequence[str]
    ) -> AsyncGenerator[executing.Output]:
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        asked = Asked(
            verb="create",
            kind="Pod/exec",
            method="GET",  # as a stream of messages must be asked for
            path=await self._path(kinds.POD, pod, "exec"),
            query=[*query, *(("command", word) for word in command)],
            accept="*/*",
        )
        async with self._calling.websocket(
            asked, executing.PROTOCOL, HEARTBEAT_SECONDS
        ) as messages:
            yield executing.Output(messages, f"{container} of pod {pod}")

    async def _listed(self, kind: Kind, selector: str, fields: str, page: int) -> Listing:
        wanted = {"labelSelector": selector, "fieldSelector": fields, "limit": str(page or "")}
        query = [(name, value) for name, value in wanted.items() if value]
        path = await self._path(kind)
        items: collections.deque[Found] = collections.deque()
        after: Query = ()
        while True:
            asked = Asked(
                verb="list", kind=kind.kind, method="GET", path=path, query=[*query, *after]
            )
            content = (await self._calling.want(asked)).content()
            items.extend(content.get("items") or ())
            metadata = content["metadata"]
            if not metadata.get("continue"):
                return Listing(items=tuple(items), version=str(metadata["resourceVersion"]))
            after = [("continue", metadata["continue"])]

    async def _want(
        self,
        verb: str,
        kind: str,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
    ) -> Answer:
        return await self._calling.want(
            Asked(verb=verb, kind=kind, method=method, path=path, body=body)
        )

    async def _path(self, kind: Kind, name: str = "", part: str = "") -> str:
        await self.connect()
        return kind.path(self.namespace, name, part)

    def _unless_gone(self, answer: Answer) -> Answer | None:
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise self._calling.refusal(answer.status, answer.body)
        return answer


def _options(grace: int | None, propagation: Propagation, uid: str) -> dict[str, object]:
    options: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if uid:
        options["preconditions"] = {"uid": uid}
    return options


def _deleted(answer: Found) -> Deleted:
    """What is gone is told as a Status, or once more as it was."""
    metadata = answer.get("metadata") or {}
    is_leaving = metadata.get("deletionTimestamp") is not None
    patience = metadata.get("deletionGracePeriodSeconds")
    is_held = is_leaving and (metadata.get("finalizers") or patience)
    return Deleted.LEAVES if is_held else Deleted.GONE
