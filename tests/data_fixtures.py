"""Fixtures of the servers of data: one of each for all tests of a process, started when needed."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from tests.data_servers import FtpServer, S3Server, a_certificate, ftp_server, s3_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def ftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FtpServer]:
    with ftp_server(tmp_path_factory.mktemp("ftp")) as server:
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return a_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def ftps(
    tmp_path_factory: pytest.TempPathFactory, certificate: pathlib.Path
) -> Iterator[FtpServer]:
    with ftp_server(tmp_path_factory.mktemp("ftps"), certificate=certificate) as server:
        yield server


@pytest.fixture(scope="session")
def old_ftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FtpServer]:
    without = ("MLSD", "MLST")
    with ftp_server(tmp_path_factory.mktemp("old"), without=without) as server:
        yield server
