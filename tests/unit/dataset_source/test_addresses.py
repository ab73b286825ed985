"""Addresses of datasets: which have secrets in them, and how they are shown."""

from __future__ import annotations

import pytest

from anubis.adapters.dataset_source.names import check_name, folders_of
from anubis.domain.dataset import refuse_secrets, scheme_of, shown
from anubis.domain.errors import DatasetInvalid


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("ftp://me:hunter2@host/x", "netrc"),
        ("FTPS://me:hunter2@host", "netrc"),
        ("https://me:hunter2@host/x", "netrc"),
        ("https://:hunter2@host/x", "netrc"),
        ("s3://key:hunter2@bucket/x", "AWS_ACCESS_KEY_ID"),
        ("gs://key:hunter2@bucket/x", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az://key:hunter2@container/x", "AZURE_STORAGE_KEY"),
        ("other://me:hunter2@host/x", "environment"),
        ("ftp://me:hunter2/hunter2@host/x", "netrc"),
        ("ftp://me:hunter2?hunter2@host/x", "netrc"),
        ("ftp://me:hunter2#hunter2@host/x", "netrc"),
        ("ftp://me:hunter2@hunter2@host/x", "netrc"),
    ],
)
def test_a_password_is_refused_with_the_place_where_to_put_it_and_not_repeated(
    uri: str, place: str
) -> None:
    with pytest.raises(DatasetInvalid, match=place) as caught:
        refuse_secrets(uri)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/x?X-Amz-Credential=me&X-Amz-Signature=hunter2",
        "gs://bucket/x?x-goog-signature=hunter2",
        "AZ://container/x?sv=1&sig=hunter2",
    ],
)
def test_a_signature_that_would_be_taken_for_a_key_is_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(DatasetInvalid, match="whole https:// address") as caught:
        refuse_secrets(uri)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "/data/a:b@c",
        "file:///data/a:b@c",
        "s3://bucket/a:b@c",
        "https://host:8080/a@b",
        "https://[::1]:8080/a@b",
        "https://[::1]/a@b",
        "https://host/x?X-Amz-Credential=a:b@c&X-Amz-Signature=00",
        "abfss://container@account/x",
        "image://name:tag/x",
        "s3://bucket/which?",
        "s3://bucket/a&sigma=1",
    ],
)
def test_what_is_no_password_is_let_through(uri: str) -> None:
    refuse_secrets(uri)


@pytest.mark.parametrize(
    ("uri", "seen"),
    [
        ("https://host/x?sig=secret", "https://host/x?…"),
        ("https://host?sig=secret", "https://host?…"),
        ("https://me:secret@host/x", "https://host/x"),
        ("https:/host/x?sig=secret", "https:/host/x?…"),
        ("https:host?sig=secret", "https:host?…"),
        ("HTTPS://host/x#secret", "HTTPS://host/x#…"),
        ("s3://bucket/a#b", "s3://bucket/a#b"),
        ("/data/a?b", "/data/a?b"),
        ("/data/x", "/data/x"),
    ],
)
def test_what_is_shown_has_no_secret(uri: str, seen: str) -> None:
    assert shown(uri) == seen


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [("S3://b/k", "s3"), ("file:/x", "file"), ("/a:b", ""), ("a/b:c", ""), ("", "")],
)
def test_the_scheme_is_what_stands_before_the_first_colon(uri: str, scheme: str) -> None:
    assert scheme_of(uri) == scheme


@pytest.mark.parametrize(
    "name",
    [
        *("", "/etc/passwd", "../x", "a/../x", "a/..", "a//b", "a/", "./a", ".", "a\nb", "a\0b"),
        "x" * 256,
        "/".join(["x" * 200] * 30),
    ],
)
def test_a_name_that_is_no_path_below_a_folder_is_refused(name: str) -> None:
    with pytest.raises(DatasetInvalid, match="s3://b/p"):
        check_name(name, "s3://b/p")


@pytest.mark.parametrize("name", ["a", "a/b", "...", "..a/b..", "größe", "x" * 255])
def test_other_names_are_let_through(name: str) -> None:
    check_name(name, "s3://b/p")


def test_the_folders_of_files_are_all_that_are_above_them() -> None:
    assert folders_of(["a", "b/c", "b/d/e", "b/d/f"]) == {"b", "b/d"}
