"""Objects of S3, Google Cloud Storage and Azure Blob Storage, one or all below a prefix.

Made with obstore (the extra ``anubis[s3]``), one library for the three. Object stores have no
folders: ``s3://bucket/a/b`` is the object of that key if there is one, else the folder of all keys
that begin with ``a/b/``. Keys are taken as they are written, without percent-decoding, as the tools
of the stores do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from anubis.adapters.dataset_source.names import check_count, check_name, folders_of
from anubis.adapters.dataset_source.object_access import Bucket, open_bucket
from anubis.domain.dataset import refuse_secrets
from anubis.domain.errors import AnubisError, DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import Item, Listing

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from obstore import GetOptions, ObjectMeta

T = TypeVar("T")

PIECE_BYTES = 4 * 1024**2
PAGE = 1000
"""Objects that a store lists at once at most."""
PATIENCE = timedelta(seconds=60)
"""How long a store may be silent. A busy one takes seconds to list a page."""
QUESTIONS = 32
"""How many objects are asked for at once, to tell empty ones from marks of folders."""


class ObjectStoreSource:
    """Reads ``s3://``, ``gs://`` and ``az://``, with the credentials of this process."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, *, patience: timedelta = PATIENCE
    ) -> None:
        self._environment = environment
        self._patience = patience
        self._buckets: dict[str, Bucket] = {}

    @property
    def schemes(self) -> frozenset[str]:
        """All of one library."""
        return frozenset({"s3", "gs", "az"})

    async def list(self, uri: str) -> Listing:
        """One object, or all below a prefix."""
        place, key = _split(uri)
        bucket = await self._open(place)
        alone = None if key == "" or key.endswith("/") else await self._head(bucket, key)
        if alone is not None and alone["size"] > 0:
            return _single(bucket, alone)
        folder = key.strip("/")
        items = await self._below(bucket, folder)
        if alone is not None and not items:
            return _single(bucket, alone)
        if not items:
            raise DatasetInvalid(
                f"{uri}: there is no such object, and none below it. Check the spelling; keys "
                f"differ in upper and lower case. Credentials used: {bucket.credentials}"
            )
        return Listing(items=tuple(items), is_directory=True, has_ranges=True)

    async def read(self, item: Item, start: int, end: int | None) -> AsyncIterator[bytes]:
        """A request that fails if the object is not the listed one."""
        place, key = _split(item.address)
        bucket = self._buckets.get(place) or await self._open(place)
        stop = end if end is not None else item.size_bytes
        if stop is not None and 0 < stop <= start:
            return
        options: GetOptions = {"if_match": _e_tag(item)}
        if stop:  # an empty object has no range
            options["range"] = (start, stop)
        wanted = None if stop is None else stop - start
        with _translated(bucket, item.address):
            answer = await self._soon(bucket.store.get_async(key, options=options), item.address)
            pieces = aiter(answer.stream(min_chunk_size=PIECE_BYTES))
            got = 0
            while (piece := await self._soon(anext(pieces, None), item.address)) is not None:
                got += len(piece)
                yield bytes(piece)
        if wanted is not None and got != wanted:
            raise SourceUnavailable(
                f"{item.address}: expected {wanted:,} bytes from {start:,} on, found {got:,}: "
                f"it changed while it was read, or the transfer was cut off"
            )

    async def _open(self, place: str) -> Bucket:
        """A new one for each listing: keys in files of credentials change while we live."""
        scheme, _, name = place.partition("://")
        bucket = await open_bucket(scheme, name, self._environment, self._patience)
        self._buckets[place] = bucket
        return bucket

    async def _head(self, bucket: Bucket, key: str) -> ObjectMeta | None:
        """None if it is not there, or if we may not know: then the listing says which."""
        from obstore.exceptions import PermissionDeniedError

        address = f"{bucket.place}/{key}"
        with _translated(bucket, address):
            try:
                return await self._soon(bucket.store.head_async(key), address)
            except (FileNotFoundError, PermissionDeniedError):
                return None

    async def _below(self, bucket: Bucket, folder: str) -> Sequence[Item]:
        place = f"{bucket.place}/{folder}"
        found: dict[str, ObjectMeta] = {}
        with _translated(bucket, place):
            pages = aiter(bucket.store.list(folder or None, chunk_size=PAGE))
            while (page := await self._soon(anext(pages, None), place)) is not None:
                for meta in page:
                    if meta["path"] == folder:  # its mark: the library drops the slash behind it
                        continue
                    name = _name_below(folder, meta["path"], place)
                    if meta["size"] > 0 or name not in found:
                        found[name] = meta
                check_count(len(found), place)
        await self._without_marks(bucket, found)
        for name in folders_of(found) & found.keys():
            raise DatasetInvalid(
                f"{place}: {name!r} is an object and a folder of others; no file "
                f"system can hold both. Name the objects one by one"
            )
        return [_item(bucket, name, found[name]) for name in sorted(found)]

    async def _without_marks(self, bucket: Bucket, found: dict[str, ObjectMeta]) -> None:
        """Drop empty objects whose key ends with a slash, by which consoles make folders.

        The library does not tell the slash; but without it there is no such object.
        """
        empty = [name for name, meta in found.items() if meta["size"] == 0]
        folders = folders_of(found)
        for name in empty:
            if name in folders:
                del found[name]
        unsure = [name for name in empty if name in found]
        for begin in range(0, len(unsure), QUESTIONS):
            names = unsure[begin : begin + QUESTIONS]
            answers = await asyncio.gather(
                *(self._head(bucket, found[name]["path"]) for name in names)
            )
            for name, answer in zip(names, answers, strict=True):
                if answer is None:
                    del found[name]

    async def _soon(self, answer: Awaitable[T], address: str) -> T:
        """Twice the patience of the library, which should notice first and retry."""
        try:
            async with asyncio.timeout(2 * self._patience.total_seconds()):
                return await answer
        except TimeoutError as error:
            raise SourceUnavailable(f"{address}: no answer in time") from error


def _split(uri: str) -> tuple[str, str]:
    """The bucket as ``s3://name``, and the key. Raises DatasetInvalid."""
    refuse_secrets(uri)
    scheme, _, rest = uri.partition("://")
    name, _, key = rest.partition("/")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        kind = "container" if scheme.lower() == "az" else "bucket"
        raise DatasetInvalid(f"{uri}: found the {kind} {name!r}, expected {scheme}://{kind}/key")
    if key:
        check_name(key.removesuffix("/"), uri)
    return f"{scheme.lower()}://{name}", key


def _name_below(folder: str, path: str, place: str) -> str:
    prefix = f"{folder}/" if folder else ""
    if not path.startswith(prefix):
        raise DatasetInvalid(f"{place}: the store listed {path[:200]!r}, which is not below it")
    name = path.removeprefix(prefix)
    check_name(name, place)
    return name


def _single(bucket: Bucket, meta: ObjectMeta) -> Listing:
    name = meta["path"].rpartition("/")[2]
    return Listing(items=(_item(bucket, name, meta),), is_directory=False, has_ranges=True)


def _item(bucket: Bucket, name: str, meta: ObjectMeta) -> Item:
    tag = meta["e_tag"] or ""
    if tag and not tag.endswith('"'):  # Azure lists them bare, and gives them in quotes otherwise
        tag = f'"{tag}"'
    return Item(
        name=name,
        address=f"{bucket.place}/{meta['path']}",
        size_bytes=meta["size"],
        version=f"{tag} {meta['size']}" if tag else "",
    )


def _e_tag(item: Item) -> str | None:
    return item.version.rpartition(" ")[0] or None


@contextlib.contextmanager
def _translated(bucket: Bucket, address: str) -> Iterator[None]:
    """Our errors for the library's. Not chained: its texts may hold a signed address."""
    from obstore import exceptions as theirs

    try:
        yield
    except (AnubisError, asyncio.CancelledError):
        raise
    except FileNotFoundError:
        raise DatasetInvalid(f"{address} is not there") from None
    except (theirs.PermissionDeniedError, theirs.UnauthenticatedError):
        raise _denied(bucket, address) from None
    except (theirs.InvalidPathError, ValueError):
        raise DatasetInvalid(
            f"{address}: a key has a part that is empty, '.' or '..', or a control character in "
            f"it, and cannot be a file below a folder"
        ) from None
    except theirs.PreconditionError:
        raise SourceUnavailable(f"{address} changed while it was read") from None
    except theirs.BaseError as error:
        raise _told(bucket, address, str(error)) from None


def _denied(bucket: Bucket, address: str) -> DatasetInvalid:
    return DatasetInvalid(
        f"{address} may not be read (access denied). Check the name of the bucket, and whether "
        f"the credentials may list and read it. Credentials used: {bucket.credentials}"
    )


def _told(bucket: Bucket, address: str, text: str) -> AnubisError:
    """What the library only says in words: it has no class for most answers to a listing."""
    text = text.partition("\n\nDebug source")[0]
    status = re.search(r"status code: (\d{3})", text)
    code = re.search(r"<Code>(\w+)</Code>", text)
    number, reason = status[1] if status else "", code[1] if code else ""
    if number == "404":
        return DatasetInvalid(f"{bucket.place} is not there ({reason or 'not found'})")
    if number in {"401", "403"}:
        return _denied(bucket, address)
    if number in {"301", "307", "400"} or "redirect without LOCATION" in text:
        answer = f"{number} {reason}".strip() or "a redirect to nowhere"
        return DatasetInvalid(
            f"{address}: the store refused the request ({answer}). If the bucket is in "
            f"another region, set AWS_REGION. Credentials used: {bucket.credentials}"
        )
    words = f"{number} {reason}".strip() or _without_address(text)
    return SourceUnavailable(f"{address}: the store did not answer well: {words}")


def _without_address(text: str) -> str:
    return re.sub(r"https?://\S+", "…", text.rpartition(" - ")[2])[:300]
