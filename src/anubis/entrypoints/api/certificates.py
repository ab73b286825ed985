"""TLS: from two files to a context, with errors that name the file."""

from __future__ import annotations

import ssl
from pathlib import Path

from anubis.domain.errors import UserError


def context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """The context for a certificate chain and its key; None for neither.

    Raises UserError if one is missing, cannot be read, or does not fit the other.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-certificate" if certificate is None else "--tls-key"
        raise UserError(f"a certificate needs its key: {missing} is missing")
    for file in (certificate, key):
        _must_be_readable(file)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password of ours, OpenSSL would ask for one on the terminal.
        made.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise UserError(
            f"{certificate} and {key} cannot be used: expected a certificate chain and its "
            f"private key, both PEM, the key without a password ({_reason(error)})"
        ) from error
    return made


def _must_be_readable(file: Path) -> None:
    try:
        with file.open("rb"):
            return
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error


def _no_password() -> str:
    return ""


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).replace("_", " ").lower()
