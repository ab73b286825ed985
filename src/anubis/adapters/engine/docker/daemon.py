"""The Docker daemon, through its client library: the calls we need, as values of our own.

The library is an extra. It is imported when the first call is made, because it takes longer to load
than most commands take in all. Every call has a deadline. What the daemon refuses is Refused, with
its own words; a daemon that does not answer is EngineUnavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from anubis.adapters.engine.docker.shapes import ContainerShape, NetworkShape
from anubis.domain.errors import EngineUnavailable

CALL_SECONDS = 60.0
"""Most calls take milliseconds; a daemon whose disk is busy may take long to delete a container."""

PULL_SILENCE_SECONDS = 300.0
"""How long a pull may bring no news: unpacking a large layer is silent for minutes."""

COPY_SECONDS = 600.0
"""The largest archive of code is a quarter of a gigabyte."""

NAMED_SECONDS, PAUSE_SECONDS = 10.0, 0.05
"""The daemon gives a name away a moment before the container with it can be seen."""

NO_ANSWER = 900  #: the library's status for a daemon that it cannot reach

SCHEMES = ("unix://", "tcp://")  #: which its guards speak too

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}")

MISSING = (
    "the docker engine needs a library that is not installed: "
    "pip install 'anubis[docker]', or make extras in a clone"
)


class Refused(EngineUnavailable):
    """The daemon said no; ``status`` is that of HTTP. Who knows better than to try again later
    catches it.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """Who the daemon is."""

    version: str
    api: str  #: the version of its API, ``1.41``
    is_podman: bool


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image that the daemon has."""

    id: str
    digests: tuple[str, ...]  #: under which registries know it; none for one that was made here


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """A container, as far as it concerns us."""

    id: str
    is_running: bool
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    address: str = ""  #: where it is reached from this machine; empty when it is not running


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Thing:
    """A network or a volume."""

    id: str
    labels: Mapping[str, str]


class Daemon:
    """One daemon, by its address: ``unix:///path`` or ``tcp://host:port``."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Any = None  #: the library tells but half of its types
        self._version: Version | None = None

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def version(self) -> Version:
        """Who answers. The first call tells whether anybody does."""
        if self._version is None:
            async with self._calling() as client:
                told = await client.version()
            names = {str(part.get("Name")) for part in told.get("Components") or ()}
            self._version = Version(
                version=str(told["Version"]),
                api=str(told["ApiVersion"]),
                is_podman="Podman Engine" in names,
            )
        return self._version

    async def facts(self) -> Mapping[str, object]:
        """What the daemon tells about itself and its machine."""
        async with self._calling() as client:
            told: Mapping[str, object] = await client.system.info()
        return told

    async def image(self, name: str) -> Image | None:
        """An image, if the daemon has it. What cannot be a name is no image."""
        # It would become a part of an address.
        if not _NAME.fullmatch(name) or ".." in name or "//" in name:
            return None
        try:
            async with self._calling() as client:
                told = await client.images.inspect(name)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        return Image(id=str(told["Id"]), digests=tuple(told.get("RepoDigests") or ()))

    async def pull(
        self, name: str, authority: Mapping[str, str] | None
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Pull an image: the daemon's messages as they come. Raises Refused with its words."""
        async with self._calling(None) as client:
            # The library wants a registry in front of a name before it sends a password.
            full = name if authority is None or "/" in name else f"docker.io/library/{name}"
            messages = client.images.pull(
                full, auth=dict(authority) if authority else None, stream=True
            )
            async with contextlib.aclosing(messages):
                while True:
                    try:
                        async with asyncio.timeout(PULL_SILENCE_SECONDS):
                            message = await anext(messages)
                    except StopAsyncIteration:
                        return
                    yield message

    async def create(self, name: str, container: ContainerShape) -> str:
        """Create a container, or find the one that has this name already; its id."""
        try:
            async with self._calling() as client:
                made = await client.containers.create(dict(container), name=name)
        except Refused as error:
            # Podman says so with another status.
            if error.status != 409 and "already in use" not in str(error):
                raise
            return await self._in_the_making(name)
        return str(made.id)

    async def copy_in(self, container: str, content: bytes) -> None:
        """Unpack an archive at the root of a container that was not started yet."""
        async with self._calling(COPY_SECONDS) as client:
            await client.containers.container(container).put_archive("/", content)

    async def _in_the_making(self, name: str) -> str:
        """A container whose name is given, and which may not be there yet, or go at this moment."""
        give_up = time.monotonic() + NAMED_SECONDS
        while time.monotonic() < give_up:
            if (found := await self.container(name)) is not None:
                return found.id
            await asyncio.sleep(PAUSE_SECONDS)
        raise EngineUnavailable(f"the name {name} is taken, but there is no such container")

    async def container(self, name: str) -> Container | None:
        """A container by name or id, if there is one."""
        try:
            async with self._calling() as client:
                told = await (await client.containers.get(name)).show()
        except Refused as error:
            if error.status == 404:
                return None
            raise
        networks = (told.get("NetworkSettings") or {}).get("Networks") or {}
        addresses = [str(one.get("IPAddress") or "") for one in networks.values()]
        return Container(
            id=str(told["Id"]),
            is_running=bool(told["State"]["Running"]),
            labels=told["Config"].get("Labels") or {},
            address=next((address for address in addresses if address), ""),
        )

    async def containers(self, labels: Sequence[str]) -> Sequence[Container]:
        """All containers with these labels, running or not."""
        async with self._calling() as client:
            found = await client.containers.list(
                all=True, filters=json.dumps({"label": list(labels)})
            )
            told = [one._container for one in found]  # the library has no other way
        return [
            Container(
                id=str(one["Id"]),
                is_running=one.get("State") in ("running", "paused", "restarting"),
                labels=one.get("Labels") or {},
            )
            for one in told
        ]

    async def delete_container(self, name: str, *, force: bool = False) -> None:
        """Delete a container with its unnamed volumes; one that is gone is as good."""
        with _unless_gone():
            async with self._calling() as client:
                await client.containers.container(name).delete(force=force, v=True)

    async def make_network(self, name: str, shape: NetworkShape) -> None:
        """Make a network, unless there is one of this name."""
        if await self._has_network(name):
            return
        try:
            async with self._calling() as client:
                await client.networks.create({**shape, "Name": name, "CheckDuplicate": True})
        except Refused as error:
            if error.status != 409 and "already" not in str(error):
                raise

    async def _has_network(self, name: str) -> bool:
        async with self._calling() as client:
            found = await client.networks.list(filters={"name": [name]})
        return any(one["Name"] == name for one in found)  # the filter finds parts of names too

    async def networks(self, labels: Sequence[str]) -> Sequence[Thing]:
        """All networks with these labels."""
        async with self._calling() as client:
            found = await client.networks.list(filters={"label": list(labels)})
        return [Thing(id=str(one["Id"]), labels=one.get("Labels") or {}) for one in found]

    async def delete_network(self, name: str) -> None:
        """Delete a network; one that is gone is as good."""
        with _unless_gone():
            async with self._calling() as client:
                await (await client.networks.get(name)).delete()

    async def volumes(self, labels: Sequence[str]) -> Sequence[Thing]:
        """All volumes with these labels."""
        async with self._calling() as client:
            found = (await client.volumes.list(filters={"label": list(labels)}))["Volumes"] or []
        return [Thing(id=str(one["Name"]), labels=one.get("Labels") or {}) for one in found]

    async def delete_volume(self, name: str) -> None:
        """Delete a volume; one that is gone is as good."""
        with _unless_gone():
            async with self._calling() as client:
                await (await client.volumes.get(name)).delete()

    @contextlib.asynccontextmanager
    async def _calling(self, seconds: float | None = CALL_SECONDS) -> AsyncIterator[Any]:
        """Lend the client for one call, and translate what goes wrong."""
        client = self._opened()
        import aiodocker
        import aiohttp

        try:
            async with asyncio.timeout(seconds):
                yield client
        except aiodocker.DockerError as error:
            if error.status == NO_ANSWER:
                raise self._unavailable(_reason(error.message)) from error
            raise Refused(error.status, str(error.message)) from error
        except TimeoutError as error:
            raise self._unavailable(
                f"no answer within {seconds or PULL_SILENCE_SECONDS:g} s"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unavailable(str(error)) from error

    def _opened(self) -> Any:
        if self._client is None:
            if not self.address.startswith(SCHEMES):
                raise EngineUnavailable(
                    f"a Docker engine at {self.address} cannot be used: runs need one on this "
                    "machine; set ANUBIS_DOCKER_HOST to unix:///path or tcp://host:port"
                )
            try:
                import aiodocker
            except ImportError as error:
                raise EngineUnavailable(MISSING) from error
            self._client = aiodocker.Docker(url=self.address)
        return self._client

    def _unavailable(self, why: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"no Docker engine answers at {self.address} ({why}); start it, see that you may use "
            "it, or set ANUBIS_DOCKER_HOST to where it is"
        )


def _reason(message: str) -> str:
    """The inner part of what the library says, which repeats the address around it."""
    return message.partition("[")[2].removesuffix("]") or message


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    try:
        yield
    except Refused as error:
        # 409: somebody else is deleting it at this moment.
        if error.status != 404 and "already in progress" not in str(error):
            raise
