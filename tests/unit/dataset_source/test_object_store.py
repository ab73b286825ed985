"""Buckets: what is an object, what is a folder, and what is neither."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import pytest
from tests.data_servers import S3Server
from tests.unit.dataset_source.false_server import Answer, an_s3_listing, answering, silent

from anubis.adapters.dataset_source import names
from anubis.adapters.dataset_source.object_store import ObjectStoreSource
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.testing.contracts.dataset_source import LARGE, content, only

QUICK = timedelta(seconds=0.5)


@pytest.fixture
def source(s3: S3Server) -> ObjectStoreSource:
    return ObjectStoreSource(s3.environment)


@pytest.fixture
def prefix() -> str:
    return uuid.uuid4().hex


def at(endpoint: str, patience: timedelta = timedelta(seconds=20)) -> ObjectStoreSource:
    """A source that asks a server of the test, without credentials."""
    return ObjectStoreSource({"AWS_ENDPOINT_URL": endpoint}, patience=patience)


async def test_marks_of_folders_are_no_files_and_empty_files_are(
    s3: S3Server, source: ObjectStoreSource, prefix: str
) -> None:
    for key in ("", "full/", "empty/", "full/zero", "zero"):
        s3.put(f"{prefix}/{key}", b"")
    s3.put(f"{prefix}/full/one", b"1")
    found = await source.list(f"s3://open/{prefix}")

    assert found.is_directory
    assert [item.name for item in found.items] == ["full/one", "full/zero", "zero"]


async def test_a_folder_with_a_mark_and_nothing_else_is_nothing(
    s3: S3Server, source: ObjectStoreSource, prefix: str
) -> None:
    s3.put(f"{prefix}/", b"")
    with pytest.raises(DatasetInvalid, match="no such object, and none below it"):
        await source.list(f"s3://open/{prefix}/")


async def test_an_object_is_not_taken_for_a_folder(
    s3: S3Server, source: ObjectStoreSource, prefix: str
) -> None:
    s3.put(f"{prefix}/file", b"1")
    with pytest.raises(DatasetInvalid, match="none below it"):
        await source.list(f"s3://open/{prefix}/file/")


async def test_a_whole_bucket_is_a_folder(s3: S3Server) -> None:
    bucket = f"b{uuid.uuid4().hex}"
    s3.put_private(bucket, "a/b", b"1")
    s3.put_private(bucket, "c", b"2")
    source = ObjectStoreSource(s3.environment)
    both = [await source.list(f"s3://{bucket}{slash}") for slash in ("", "/")]

    assert [[item.name for item in found.items] for found in both] == [["a/b", "c"]] * 2


async def test_a_folder_of_more_objects_than_a_page_is_whole(
    s3: S3Server, source: ObjectStoreSource, prefix: str
) -> None:
    store = s3.store("open")
    for begin in range(0, 1100, 50):
        keys = (f"{prefix}/{number:04}" for number in range(begin, begin + 50))
        await asyncio.gather(*(store.put_async(key, b"1") for key in keys))
    found = await source.list(f"s3://open/{prefix}")

    assert [item.name for item in found.items] == [f"{number:04}" for number in range(1100)]


async def test_a_change_in_the_middle_of_a_transfer_is_seen(
    s3: S3Server, source: ObjectStoreSource, prefix: str
) -> None:
    s3.put(f"{prefix}/a", LARGE)
    item = await only(source, f"s3://open/{prefix}/a")
    half = len(LARGE) // 2
    await content(source, item, 0, half)
    s3.put(f"{prefix}/a", LARGE[::-1])

    with pytest.raises(SourceUnavailable, match="changed while it was read"):
        await content(source, item, half, None)


async def test_a_missing_bucket_is_named(source: ObjectStoreSource) -> None:
    with pytest.raises(DatasetInvalid, match="s3://no-such-bucket is not there"):
        await source.list("s3://no-such-bucket/x")


@pytest.mark.parametrize("uri", ["s3://", "s3:///x", "s3://a b/x", "s3://open/a/../b", "s3://-/x"])
async def test_an_address_that_makes_no_sense_is_refused(
    source: ObjectStoreSource, uri: str
) -> None:
    with pytest.raises(DatasetInvalid):
        await source.list(uri)


@pytest.mark.parametrize("key", ["p/../x", "p//x", "p/./x", "/etc/x", "other/x", "p/a&#10;b"])
async def test_a_store_that_lists_what_would_leave_the_folder_is_refused(key: str) -> None:
    def answer(method: str, path: str) -> Answer:
        return (404, b"") if method == "HEAD" else (200, an_s3_listing("p/good", key))

    with answering(answer) as server, pytest.raises(DatasetInvalid, match="s3://b/p"):
        await at(server.endpoint).list("s3://b/p")


async def test_a_listing_without_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST_OBJECTS", 2500)
    numbers = iter(range(1_000_000))

    def answer(method: str, path: str) -> Answer:
        keys = (f"p/{next(numbers)}" for _ in range(1000))
        return (200, an_s3_listing(*keys, is_truncated=True))

    with answering(answer) as server:
        with pytest.raises(DatasetInvalid, match="more than 2,500 objects"):
            await at(server.endpoint).list("s3://b/p/")
        assert len(server.requests) < 10


async def test_an_object_that_is_also_a_folder_is_refused() -> None:
    def answer(method: str, path: str) -> Answer:
        return 200, an_s3_listing("p/a", "p/a/b")

    with answering(answer) as server, pytest.raises(DatasetInvalid, match="'a' is an object and"):
        await at(server.endpoint).list("s3://b/p/")


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with silent() as port, pytest.raises(SourceUnavailable, match="s3://b/x"):
        await at(f"http://127.0.0.1:{port}", QUICK).list("s3://b/x")


async def test_a_server_that_is_not_there_can_be_tried_later() -> None:
    with silent() as port:
        pass  # closed again, and nobody else has it yet
    with pytest.raises(SourceUnavailable, match="s3://b/x"):
        await at(f"http://127.0.0.1:{port}").list("s3://b/x")


async def test_a_server_in_trouble_can_be_tried_later() -> None:
    with (
        answering(lambda _method, _path: (503, b"<Error><Code>SlowDown</Code></Error>")) as server,
        pytest.raises(SourceUnavailable, match=r"s3://b/p: .*503 SlowDown"),
    ):
        await at(server.endpoint).list("s3://b/p/")


async def test_a_bucket_of_another_region_is_told_with_what_to_set() -> None:
    with (
        answering(
            lambda _method, _path: (301, b"<Error><Code>PermanentRedirect</Code></Error>")
        ) as server,
        pytest.raises(DatasetInvalid, match="AWS_REGION"),
    ):
        await at(server.endpoint).list("s3://b/p/")


async def test_a_version_is_the_same_whether_azure_quotes_it_or_not() -> None:
    facts = (
        "<Last-Modified>Wed, 01 Jan 2020 00:00:00 GMT</Last-Modified><Etag>1</Etag>"
        "<Content-Length>1</Content-Length><Content-Type>text/plain</Content-Type>"
    )
    blob = f"<Blob><Name>p/a</Name><Properties>{facts}</Properties></Blob>"
    page = f"<EnumerationResults><Blobs>{blob}</Blobs><NextMarker/></EnumerationResults>"

    def answer(method: str, path: str) -> Answer:
        return (200, b"1") if method == "HEAD" else (200, page.encode())

    with answering(answer) as server:
        environment = {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_ENDPOINT": server.endpoint}
        source = ObjectStoreSource(environment)
        alone = await only(source, "az://c/p/a")
        below = await only(source, "az://c/p/")

    assert alone.version == below.version == '"1" 1'
