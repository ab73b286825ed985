"""Every source of datasets keeps the promises of the port."""

from __future__ import annotations

import pathlib
import urllib.parse
import uuid

import pytest
from tests.data_servers import FtpServer, S3Server

from anubis.adapters.dataset_source.file import FileSource
from anubis.adapters.dataset_source.ftp import FtpSource
from anubis.adapters.dataset_source.http import HttpSource
from anubis.adapters.dataset_source.object_store import ObjectStoreSource
from anubis.ports.dataset_source import DatasetSource
from anubis.testing.contracts.dataset_source import DatasetSourceContract, ObjectContract, Shelf


class FolderShelf:
    """A folder that a server, or nobody, shows under ``address``."""

    def __init__(self, folder: pathlib.Path, address: str) -> None:
        self._name = uuid.uuid4().hex
        self._folder = folder / self._name
        self._folder.mkdir()
        self._address = address

    def uri(self, name: str) -> str:
        return f"{self._address}/{self._name}/{urllib.parse.quote(name)}"

    def put(self, name: str, content: bytes) -> None:
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def remove(self, name: str) -> None:
        (self._folder / name).unlink()


class BucketShelf:
    """A prefix of the open bucket."""

    def __init__(self, server: S3Server, address: str, *, is_quoted: bool) -> None:
        self._server = server
        self._prefix = uuid.uuid4().hex
        self._address = address
        self._is_quoted = is_quoted

    def uri(self, name: str) -> str:
        written = urllib.parse.quote(name) if self._is_quoted else name
        return f"{self._address}/{self._prefix}/{written}"

    def put(self, name: str, content: bytes) -> None:
        self._server.put(f"{self._prefix}/{urllib.parse.quote(name)}", content)

    def remove(self, name: str) -> None:
        self._server.delete(f"{self._prefix}/{urllib.parse.quote(name)}")


class TestFile(DatasetSourceContract):
    @pytest.fixture
    def source(self) -> DatasetSource:
        return FileSource()

    @pytest.fixture
    def shelf(self, tmp_path: pathlib.Path) -> Shelf:
        return FolderShelf(tmp_path, f"file://{tmp_path}")


class TestHttp(ObjectContract):
    @pytest.fixture
    def source(self) -> DatasetSource:
        return HttpSource()

    @pytest.fixture
    def shelf(self, s3: S3Server) -> Shelf:
        return BucketShelf(s3, f"{s3.endpoint}/open", is_quoted=True)


class TestS3(DatasetSourceContract):
    @pytest.fixture
    def source(self, s3: S3Server) -> DatasetSource:
        return ObjectStoreSource(s3.environment)

    @pytest.fixture
    def shelf(self, s3: S3Server) -> Shelf:
        return BucketShelf(s3, "s3://open", is_quoted=False)


class TestGoogle(DatasetSourceContract):
    """Through the XML API, whose form is that of S3; Google itself was not asked."""

    @pytest.fixture
    def source(self, s3: S3Server) -> DatasetSource:
        return ObjectStoreSource({"GOOGLE_BASE_URL": s3.endpoint})

    @pytest.fixture
    def shelf(self, s3: S3Server) -> Shelf:
        return BucketShelf(s3, "gs://open", is_quoted=False)


class TestFtp(DatasetSourceContract):
    @pytest.fixture
    def source(self) -> DatasetSource:
        return FtpSource({})

    @pytest.fixture
    def shelf(self, ftp: FtpServer) -> Shelf:
        return FolderShelf(ftp.folder, f"ftp://127.0.0.1:{ftp.port}")


class TestOldFtp(DatasetSourceContract):
    """A server that knows only the commands of the first hour."""

    @pytest.fixture
    def source(self) -> DatasetSource:
        return FtpSource({})

    @pytest.fixture
    def shelf(self, old_ftp: FtpServer) -> Shelf:
        return FolderShelf(old_ftp.folder, f"ftp://127.0.0.1:{old_ftp.port}")


class TestFtps(DatasetSourceContract):
    @pytest.fixture
    def source(self, certificate: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> DatasetSource:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("authority.pem")))
        return FtpSource({})

    @pytest.fixture
    def shelf(self, ftps: FtpServer) -> Shelf:
        return FolderShelf(ftps.folder, f"ftps://127.0.0.1:{ftps.port}")
