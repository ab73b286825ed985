"""Keys in the form of OpenSSH, made anew for each run: for whoever logs in, and for the host.

The library is part of the extra ``anubis[docker]``, since only units that have hosts of their own
talk over ssh. It is imported when keys are made.
"""

from __future__ import annotations

from collections.abc import Mapping

from anubis.domain.errors import EngineUnavailable

COMMENT = b"anubis"


def make() -> Mapping[str, str]:
    """Two pairs of ed25519 keys: ``id`` and ``host``, with ``id.pub`` and ``host.pub``.

    Raises EngineUnavailable if the library is not installed.
    """
    return {name: text for pair in ("id", "host") for name, text in _pair(pair).items()}


def _pair(name: str) -> Mapping[str, str]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise EngineUnavailable(
            "units that talk over ssh need a library that is not installed: "
            "pip install 'anubis[docker]'"
        ) from error
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return {name: private.decode(), f"{name}.pub": f"{public.decode()} {COMMENT.decode()}\n"}
