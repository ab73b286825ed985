"""Keys in OpenSSH's own format, new ones for every run: nobody can use them anywhere else."""

from __future__ import annotations

from collections.abc import Mapping

from anubis.domain.errors import UserError


def make() -> Mapping[str, str]:
    """A pair for the one who calls (``id``) and a pair for those who are called (``host``).

    Raises UserError that names the extra to install where the library is missing.
    """
    return {**_pair("id"), **_pair("host")}


def _pair(name: str) -> dict[str, str]:
    # Here and not above: a plain installation has no need of this library.
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise UserError(
            "keys for ssh need a library that is not installed: pip install 'anubis[docker]'"
        ) from None
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return {name: secret.decode(), f"{name}.pub": f"{public.decode()} anubis\n"}
