"""Credentials of buckets: from where they come, and that they are never shown."""

from __future__ import annotations

import json
import pathlib
from datetime import timedelta

import pytest
from tests.data_servers import KEY, SECRET, S3Server
from tests.unit.dataset_source.false_server import Answer, an_s3_listing, answering

from anubis.adapters.dataset_source.object_access import open_bucket
from anubis.adapters.dataset_source.object_store import ObjectStoreSource
from anubis.domain.errors import DatasetInvalid, SourceUnavailable

MINUTE = timedelta(minutes=1)
AZURE_KEY = "c2VjcmV0LWF6dXJlLWtleQ=="


@pytest.fixture
def private(s3: S3Server) -> str:
    """The address of an object that needs the key."""
    s3.put_private("private", "x", b"1")
    return "s3://private/x"


async def can_read(environment: dict[str, str], uri: str) -> bool:
    return len((await ObjectStoreSource(environment).list(uri)).items) == 1


async def test_keys_come_from_the_environment(s3: S3Server, private: str) -> None:
    assert await can_read(s3.environment, private)


async def test_without_keys_a_public_bucket_is_read_and_a_private_one_is_not(
    s3: S3Server, private: str
) -> None:
    s3.put("public", b"1")

    assert await can_read(s3.anonymous, "s3://open/public")
    with pytest.raises(
        DatasetInvalid, match=r"s3://private/x may not be read.*none: no AWS_ACCESS"
    ):
        await can_read(s3.anonymous, private)


async def test_a_wrong_key_is_told_by_its_place_and_not_by_its_value(
    s3: S3Server, private: str
) -> None:
    environment = s3.environment | {"AWS_SECRET_ACCESS_KEY": "hunter2"}
    with pytest.raises(DatasetInvalid, match="the key in AWS_ACCESS_KEY_ID") as caught:
        await can_read(environment, private)
    assert "hunter2" not in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(("named", "profile"), [({}, "default"), ({"AWS_PROFILE": "team"}, "team")])
async def test_keys_come_from_a_profile(
    s3: S3Server, private: str, tmp_path: pathlib.Path, named: dict[str, str], profile: str
) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        f"[other]\naws_access_key_id = no\n"
        f"[{profile}]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    environment = s3.anonymous | named | {"AWS_SHARED_CREDENTIALS_FILE": str(file)}

    assert await can_read(environment, private)


async def test_a_profile_in_the_home_says_also_where_the_server_is(
    s3: S3Server, private: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        f"[team]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / ".aws/config").write_text(
        f"[profile team]\nregion = us-east-1\nendpoint_url = {s3.endpoint}\n"
    )

    assert await can_read({"HOME": str(tmp_path), "AWS_PROFILE": "team"}, private)


async def test_a_profile_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    environment = {"AWS_PROFILE": "absent", "HOME": str(tmp_path)}
    with pytest.raises(DatasetInvalid, match="AWS_PROFILE: found 'absent', expected a profile"):
        await can_read(environment, "s3://bucket/x")


async def test_a_damaged_file_of_credentials_is_not_quoted(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("hunter2\n")
    with pytest.raises(DatasetInvalid, match="cannot be read") as caught:
        await can_read({"AWS_SHARED_CREDENTIALS_FILE": str(file)}, "s3://bucket/x")
    assert "hunter2" not in str(caught.value)


async def test_on_a_machine_with_a_role_the_role_is_used() -> None:
    def answer(method: str, path: str) -> Answer:
        return (200, b"token") if path.endswith("/token") else (200, b"role")

    with answering(answer) as metadata:
        environment = {"AWS_METADATA_ENDPOINT": metadata.endpoint}
        bucket = await open_bucket("s3", "b", environment, MINUTE)

    assert bucket.credentials == "the role of this machine"


@pytest.mark.parametrize(
    ("status", "disabled"), [(404, {}), (200, {"AWS_EC2_METADATA_DISABLED": "true"})]
)
async def test_on_a_machine_without_a_role_public_buckets_are_read(
    status: int, disabled: dict[str, str]
) -> None:
    with answering(lambda _method, _path: (status, b"token")) as metadata:
        environment = {"AWS_METADATA_ENDPOINT": metadata.endpoint} | disabled
        bucket = await open_bucket("s3", "b", environment, MINUTE)

    assert bucket.credentials.startswith("none")


async def test_a_google_bucket_is_read_without_a_signature_if_there_are_no_credentials() -> None:
    with answering(lambda _method, _path: (200, an_s3_listing("p/a"))) as server:
        source = ObjectStoreSource({"GOOGLE_BASE_URL": server.endpoint})
        found = await source.list("gs://b/p/")

    assert [item.name for item in found.items] == ["a"]
    assert found.items[0].address == "gs://b/p/a"


async def test_a_google_key_file_that_is_not_there_is_told(tmp_path: pathlib.Path) -> None:
    environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "absent.json")}
    with pytest.raises(DatasetInvalid, match=r"gs://b cannot be opened: .*absent\.json"):
        await open_bucket("gs", "b", environment, MINUTE)


async def test_a_google_key_file_is_used(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "key.json"
    with answering(lambda _method, _path: (200, an_s3_listing("p/a"))) as server:
        facts = {"gcs_base_url": server.endpoint, "disable_oauth": True, "client_email": ""}
        file.write_text(json.dumps(facts | {"private_key": "", "private_key_id": ""}))
        environment = {
            "GOOGLE_SERVICE_ACCOUNT": str(file),
            "GOOGLE_BASE_URL": server.endpoint,
        }
        bucket = await open_bucket("gs", "b", environment, MINUTE)

    assert bucket.credentials == "the file that GOOGLE_SERVICE_ACCOUNT names"


async def test_an_azure_container_without_an_account_is_told_with_what_to_set() -> None:
    with pytest.raises(DatasetInvalid, match="AZURE_STORAGE_ACCOUNT"):
        await ObjectStoreSource({}).list("az://container/x")


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"AZURE_STORAGE_ACCOUNT": "a"}, "none: no AZURE_STORAGE_KEY"),
        ({"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": AZURE_KEY}, "the key of the storage"),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=a;AccountKey={AZURE_KEY}"},
            "the key of the storage",
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;SharedAccessSignature=sv=1&sig=x"},
            "the signature in AZURE_STORAGE_CONNECTION_STRING",
        ),
        (
            {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=x"},
            "the signature in AZURE_STORAGE_SAS_TOKEN",
        ),
    ],
)
async def test_azure_credentials_come_from_the_variables_of_azure(
    environment: dict[str, str], words: str
) -> None:
    bucket = await open_bucket("az", "container", environment, MINUTE)

    assert words in bucket.credentials
    assert AZURE_KEY not in bucket.credentials


async def test_the_signature_of_azure_is_in_no_message() -> None:
    with answering(lambda _method, _path: (503, b"")) as server:
        environment = {
            "AZURE_STORAGE_ACCOUNT": "a",
            "AZURE_STORAGE_ENDPOINT": server.endpoint,
            "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=hunter2",
        }
        with pytest.raises(SourceUnavailable) as caught:
            await ObjectStoreSource(environment).list("az://container/x/")

    assert any("hunter2" in request for request in server.requests)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
