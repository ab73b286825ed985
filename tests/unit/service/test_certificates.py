"""Certificates that cannot be used are explained with the file that is to blame."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from anubis.domain.errors import UserError
from anubis.entrypoints.api import certificates


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issued(authority: trustme.CA, folder: Path) -> tuple[Path, Path]:
    folder.mkdir()
    made = authority.issue_cert("localhost")
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    return chain, key


def test_without_a_certificate_there_is_no_tls() -> None:
    assert certificates.context(None, None) is None


def test_a_chain_and_its_key_make_a_modern_context(authority: trustme.CA, tmp_path: Path) -> None:
    context = certificates.context(*issued(authority, tmp_path / "good"))
    assert context is not None
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_one_without_the_other_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    chain, key = issued(authority, tmp_path / "good")
    with pytest.raises(UserError, match="--tls-key is missing"):
        certificates.context(chain, None)
    with pytest.raises(UserError, match="--tls-certificate is missing"):
        certificates.context(None, key)


def test_files_that_cannot_be_used_are_named(authority: trustme.CA, tmp_path: Path) -> None:
    chain, key = issued(authority, tmp_path / "good")
    _, foreign = issued(authority, tmp_path / "other")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("this is no certificate")
    for wrong in ((tmp_path / "missing.pem", key), (tmp_path, key), (nonsense, key)):
        with pytest.raises(UserError, match=wrong[0].name):
            certificates.context(*wrong)
    with pytest.raises(UserError, match=r"other/key\.pem"):
        certificates.context(chain, foreign)


LOCKED = """\
-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,00000000000000000000000000000000

AAAAAAAAAAAAAAAAAAAAAA==
-----END RSA PRIVATE KEY-----
"""


def test_a_key_with_a_password_asks_nobody(authority: trustme.CA, tmp_path: Path) -> None:
    """OpenSSL would ask on the terminal, and a service has none."""
    chain, _ = issued(authority, tmp_path / "good")
    locked = tmp_path / "locked.pem"
    locked.write_text(LOCKED)
    with pytest.raises(UserError, match="without a password"):
        certificates.context(chain, locked)
