"""FTP: logins, servers that misbehave, and paths that make no sense."""

from __future__ import annotations

import asyncio
import pathlib
import sys
import threading
import time
from collections.abc import Mapping
from datetime import timedelta

import pytest
from tests.data_servers import KEY, SECRET, FtpServer
from tests.unit.dataset_source.false_server import silent

from anubis.adapters.dataset_source.ftp import FtpSource
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import Item
from anubis.testing.contracts.dataset_source import LARGE, content, only

QUICK = timedelta(seconds=0.5)


@pytest.fixture
def netrc(tmp_path: pathlib.Path) -> Mapping[str, str]:
    """An environment with a password for this machine."""
    file = tmp_path / "netrc"
    file.write_text(f"machine 127.0.0.1 login {KEY} password {SECRET}\n")
    return {"NETRC": str(file)}


async def test_user_and_password_come_from_netrc(ftp: FtpServer, netrc: Mapping[str, str]) -> None:
    (ftp.home / "mine").write_bytes(b"mine")
    source = FtpSource(netrc)
    item = await only(source, f"ftp://127.0.0.1:{ftp.port}/mine")

    assert await content(source, item) == b"mine"


async def test_a_netrc_in_the_home_is_read(ftp: FtpServer, tmp_path: pathlib.Path) -> None:
    file = tmp_path / ".netrc"
    file.write_text(f"default login {KEY} password {SECRET}\n")
    file.chmod(0o600)
    (ftp.home / "home").write_bytes(b"home")

    await only(FtpSource({"HOME": str(tmp_path)}), f"ftp://127.0.0.1:{ftp.port}/home")


async def test_without_netrc_the_login_is_anonymous(ftp: FtpServer) -> None:
    (ftp.home / "private").write_bytes(b"1")
    with pytest.raises(DatasetInvalid, match="private is not there"):
        await FtpSource({}).list(f"ftp://127.0.0.1:{ftp.port}/private")


async def test_a_wrong_password_is_told_without_it(ftp: FtpServer, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine 127.0.0.1 login me password hunter2\n")
    with pytest.raises(DatasetInvalid, match=r"refused the login.*netrc") as caught:
        await FtpSource({"NETRC": str(file)}).list(f"ftp://127.0.0.1:{ftp.port}/x")
    assert "hunter2" not in str(caught.value)


async def test_a_damaged_netrc_is_not_quoted(ftp: FtpServer, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine 127.0.0.1 hunter2\n")
    with pytest.raises(DatasetInvalid, match="netrc cannot be read") as caught:
        await FtpSource({"NETRC": str(file)}).list(f"ftp://127.0.0.1:{ftp.port}/x")
    assert "hunter2" not in str(caught.value)


async def test_a_certificate_that_nobody_vouches_for_is_refused(ftps: FtpServer) -> None:
    with pytest.raises(DatasetInvalid, match=r"not trusted.*SSL_CERT_FILE"):
        await FtpSource({}).list(f"ftps://127.0.0.1:{ftps.port}/x")


async def test_a_server_that_wants_tls_is_not_given_a_password_without(
    ftps: FtpServer, netrc: Mapping[str, str]
) -> None:
    with pytest.raises(DatasetInvalid):
        await FtpSource(netrc).list(f"ftp://127.0.0.1:{ftps.port}/x")


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with silent() as port, pytest.raises(SourceUnavailable, match=f"127.0.0.1:{port}"):
        await FtpSource({}, patience=QUICK).list(f"ftp://127.0.0.1:{port}/x")


async def test_a_server_that_is_not_there_can_be_tried_later() -> None:
    with silent() as port:
        pass  # closed again, and nobody else has it yet
    with pytest.raises(SourceUnavailable):
        await FtpSource({}).list(f"ftp://127.0.0.1:{port}/x")


@pytest.mark.parametrize("seconds", [0, 0.001, 0.1])
async def test_a_wait_that_is_canceled_does_not_keep_its_thread(seconds: float) -> None:
    with silent() as port:
        source = FtpSource({}, patience=timedelta(minutes=5))
        task = asyncio.create_task(source.list(f"ftp://127.0.0.1:{port}/x"))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait({task})
        for thread in _threads():
            await asyncio.to_thread(_until_idle, thread)

    assert task.cancelled()


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("ftp-source")]


def _until_idle(thread: threading.Thread) -> None:
    """Threads of a pool stay, but at the place where they wait for work."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert thread.ident is not None
        frame = sys._current_frames()[thread.ident]
        if frame.f_code.co_name == "_worker":
            return
        time.sleep(0.05)
    raise AssertionError("a thread still waits for a server that nobody asks any more")


async def test_folders_that_contain_themselves_come_to_an_end(ftp: FtpServer) -> None:
    folder = ftp.folder / "loop"
    folder.mkdir()
    (folder / "again").symlink_to(folder)
    (folder / "file").write_bytes(b"1")
    with pytest.raises(DatasetInvalid, match="folders in folders"):
        await FtpSource({}).list(f"ftp://127.0.0.1:{ftp.port}/loop")


async def test_an_empty_folder_is_told_as_such(ftp: FtpServer) -> None:
    (ftp.folder / "hollow").mkdir()
    with pytest.raises(DatasetInvalid, match="a folder without files"):
        await FtpSource({}).list(f"ftp://127.0.0.1:{ftp.port}/hollow/")


async def test_a_file_that_grows_while_it_is_read_is_noticed(ftp: FtpServer) -> None:
    file = ftp.folder / "growing"
    file.write_bytes(LARGE)
    source = FtpSource({})
    item = await only(source, f"ftp://127.0.0.1:{ftp.port}/growing")
    reading = source.read(item, 0, None)
    await anext(reading)
    with file.open("ab") as more:
        more.write(b"more")

    with pytest.raises(SourceUnavailable):
        async for _ in reading:
            pass


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("ftp:///x", "expected ftp://host/path"),
        ("ftp://me@host/x", "netrc"),
        ("ftp://me:hunter2@host/x", "password"),
        ("ftp://host:ninety/x", "port"),
        ("ftp://host/a?b", "%3F"),
        ("ftp://host/a%0D%0ADELE%20b", "control character"),
        ("ftp://host/%ff", "UTF-8"),
    ],
)
async def test_an_address_that_makes_no_sense_is_refused(uri: str, words: str) -> None:
    with pytest.raises(DatasetInvalid, match=words):
        await FtpSource({}).list(uri)
    item = Item(name="x", address=uri, size_bytes=1)
    with pytest.raises(DatasetInvalid, match=words):
        await content(FtpSource({}), item)
