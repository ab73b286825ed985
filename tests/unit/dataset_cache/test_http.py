"""What comes over the web is right, whatever the server does."""

from __future__ import annotations

import asyncio
import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.dataset_cache.web_server import Page, Server

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache, transferring
from anubis.adapters.dataset_source import http_exchange
from anubis.adapters.dataset_source.http import HttpSource
from anubis.domain.dataset import Dataset, Progress, Reference, checksum
from anubis.domain.errors import DatasetInvalid, SourceUnavailable, StorageFull
from anubis.testing.contracts.dataset_cache import ignore

CONTENT = os.urandom(3 * 1024 * 1024 + 17)
SHA256 = checksum(f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")


async def _fetched(cache: DirectoryDatasetCache, uri: str) -> bytes:
    dataset = await cache.fetch(Reference(uri=uri), run=None, report=ignore)
    return Path(dataset.path).read_bytes()


@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize("has_length", [True, False])
@pytest.mark.parametrize("content", [CONTENT, b"", b"x"])
async def test_content_comes_whole_with_or_without_ranges_and_length(
    cache: DirectoryDatasetCache,
    server: Server,
    has_ranges: bool,
    has_length: bool,
    content: bytes,
) -> None:
    page = Page(content=content, has_ranges=has_ranges, has_length=has_length)

    assert await _fetched(cache, server.put("/data.bin", page)) == content


async def test_large_content_comes_in_parallel_ranges_with_the_checksum_of_the_whole(
    cache: DirectoryDatasetCache, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transferring, "LEAST_SEGMENT", 512 * 1024)
    uri = server.put("/a%20b.bin", Page(content=CONTENT, pause=0.002))
    told: list[Progress] = []

    dataset = await cache.fetch(Reference(uri=uri, checksum=SHA256), run=None, report=told.append)

    assert Path(dataset.path).name == "a b.bin"
    assert Path(dataset.path).read_bytes() == CONTENT
    assert len([asked for _, asked in server.asked if asked != "bytes=0-0"]) == 7
    assert (server.sent, told[-1].done_bytes, told[0].total_bytes) == (*[len(CONTENT)] * 3,)


async def test_a_connection_that_is_cut_goes_on_where_it_stopped(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    uri = server.put("/data", Page(content=CONTENT, cuts=[2**20, 2**20, 2**19]))

    assert await _fetched(cache, uri) == CONTENT
    assert server.sent == len(CONTENT)


@pytest.mark.parametrize("lacks", ["ranges", "version"])
async def test_a_connection_that_is_cut_starts_again_where_it_cannot_go_on(
    cache: DirectoryDatasetCache, server: Server, lacks: str
) -> None:
    etag = "" if lacks == "version" else '"1"'
    page = Page(content=CONTENT, cuts=[2**20], has_ranges=lacks != "ranges", etag=etag)

    assert await _fetched(cache, server.put("/data", page)) == CONTENT


async def test_content_that_changes_in_the_middle_is_never_mixed(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    other = os.urandom(len(CONTENT))
    page = Page(content=CONTENT, cuts=[2**20], becomes=(other, '"2"'))

    assert await _fetched(cache, server.put("/data", page)) == other


@pytest.mark.parametrize("by", [-1000, 1000])
async def test_a_server_that_lies_about_the_size_is_given_up(
    cache: DirectoryDatasetCache, server: Server, by: int
) -> None:
    """Too short is a connection that was cut; too long is cut by the protocol, and then wrong."""
    page = Page(content=CONTENT, has_ranges=False, extra_length=by)
    reference = Reference(uri=server.put("/data", page), checksum=SHA256)

    with pytest.raises((SourceUnavailable, DatasetInvalid)):
        await cache.fetch(reference, run=None, report=ignore)
    assert list(await cache.list()) == []


@pytest.mark.parametrize(("status", "times"), [(404, 1), (403, 1), (500, 5), (503, 5), (429, 5)])
async def test_a_refusal_that_may_pass_is_tried_again_and_another_is_not(
    cache: DirectoryDatasetCache, server: Server, status: int, times: int
) -> None:
    uri = server.put("/data", Page(status=status))

    error = DatasetInvalid if times == 1 else SourceUnavailable
    with pytest.raises(error, match=str(status)):
        await cache.fetch(Reference(uri=f"{uri}?X-Signature=secret"), run=None, report=ignore)
    assert len(server.asked) == times


async def test_a_refusal_does_not_show_a_signature(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    uri = server.put("/data", Page(status=403))

    with pytest.raises(DatasetInvalid) as error:
        await cache.fetch(Reference(uri=f"{uri}?X-Signature=secret"), run=None, report=ignore)
    assert "secret" not in str(error.value)


async def test_redirects_are_followed_and_the_first_name_counts(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    server.put("/store/1234", Page(content=CONTENT))
    uri = server.put("/train.csv", Page(status=302, location="/store/1234?signed"))

    dataset = await cache.fetch(Reference(uri=uri), run=None, report=ignore)

    assert Path(dataset.path).name == "train.csv"
    assert Path(dataset.path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "location",
    [
        "/round",
        "file:///etc/passwd",
        "http://u:secret@h/",
        "http://[::1/x?secret",
        "gopher://h/" + 9999 * "x",
    ],
)
async def test_a_redirect_that_leads_nowhere_good_is_refused(
    cache: DirectoryDatasetCache, server: Server, location: str
) -> None:
    uri = server.put("/round", Page(status=301, location=location))

    with pytest.raises(DatasetInvalid, match=r"redirect|password") as error:
        await cache.fetch(Reference(uri=uri), run=None, report=ignore)
    assert "secret" not in str(error.value)
    assert str(error.value).startswith(uri)
    assert len(str(error.value)) < 500
    assert len(server.asked) <= 11


async def test_content_that_is_encoded_though_nobody_asked_is_refused(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    page = Page(content=b"packed", headers={"Content-Encoding": "gzip"})

    with pytest.raises(DatasetInvalid, match="gzip"):
        await cache.fetch(Reference(uri=server.put("/x", page)), run=None, report=ignore)


@pytest.mark.parametrize("size", [19 * "9", 5000 * "9"])
async def test_a_size_that_no_file_has_is_no_defect_of_ours(
    cache: DirectoryDatasetCache, server: Server, size: str
) -> None:
    page = Page(content=b"x", headers={"Content-Range": f"bytes 0-0/{size}"})
    page.status = 206

    with pytest.raises((StorageFull, SourceUnavailable)):
        await cache.fetch(Reference(uri=server.put("/x", page)), run=None, report=ignore)


async def test_words_of_a_server_are_repeated_only_so_far() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(60_000 * b"x" + b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(SourceUnavailable) as error:
            await HttpSource().list(f"http://127.0.0.1:{port}/x")
    assert len(str(error.value)) < 500


async def test_nobody_at_the_address_is_a_source_that_is_unavailable(
    cache: DirectoryDatasetCache,
) -> None:
    with pytest.raises(SourceUnavailable, match=r"http://127\.0\.0\.1:1/x"):
        await cache.fetch(Reference(uri="http://127.0.0.1:1/x"), run=None, report=ignore)


@pytest.mark.parametrize("uri", ["http://", "http:///x", "http://h:port/x", "http://[::1/x"])
async def test_what_is_no_url_is_refused(uri: str) -> None:
    with pytest.raises(DatasetInvalid):
        await HttpSource().list(uri)


async def test_credentials_come_from_netrc_and_stay_with_their_host(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password word\n")
    elsewhere = server.address.replace("127.0.0.1", "localhost")
    server.put("/there", Page(content=b"x"))
    uri = server.put("/here", Page(status=307, location=f"{elsewhere}/there"))

    await HttpSource().list(uri)

    assert server.authorizations == ["Basic bWU6d29yZA==", ""]


async def test_a_password_for_https_does_not_go_on_in_the_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine data.example login me password word\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    exchange = http_exchange.Exchange("https://data.example/x", timedelta(seconds=1))

    with pytest.raises(DatasetInvalid, match="from https to http") as error:
        exchange._next("https://data.example/x", "http://data.example/y")
    assert "word" not in str(error.value).replace("password", "")
    assert exchange._next("https://data.example/x", "http://other.example/y")


async def test_a_proxy_of_the_environment_is_asked(
    cache: DirectoryDatasetCache, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.address)
    server.pages["http://data.example/x"] = Page(content=b"by proxy")

    assert await _fetched(cache, "http://data.example/x") == b"by proxy"


async def test_canceling_does_not_wait_for_a_server_that_stalls(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    uri = server.put("/data", Page(content=CONTENT, pause=100))
    begun = asyncio.Event()
    fetching = asyncio.create_task(
        cache.fetch(Reference(uri=uri), run=None, report=lambda _: begun.set())
    )
    await begun.wait()
    fetching.cancel()

    done, _ = await asyncio.wait([fetching], timeout=20)

    assert done
    assert fetching.cancelled()


async def test_the_same_bytes_under_two_urls_are_kept_once_under_both_names(
    cache: DirectoryDatasetCache, server: Server
) -> None:
    datasets: list[Dataset] = []
    for path in ("/a.bin", "/b.bin"):
        uri = server.put(path, Page(content=CONTENT))
        datasets.append(await cache.fetch(Reference(uri=uri), run=None, report=ignore))

    first, second = (Path(dataset.path) for dataset in datasets)
    assert (first.name, second.name) == ("a.bin", "b.bin")
    assert first.samefile(second)
    assert await cache.evict(datasets[0].key) == 0
    assert second.read_bytes() == CONTENT
    assert await cache.evict(datasets[1].key) == len(CONTENT)
    assert not second.exists()
