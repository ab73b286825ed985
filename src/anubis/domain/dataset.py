"""A dataset: content named by URI and checksum, held once in the content-addressed cache."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import NewType

from anubis.domain.errors import DatasetInvalid, UserError

DatasetKey = NewType("DatasetKey", str)
"""64 hex digits: what was asked for. Equal references have equal keys."""

ALGORITHMS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}
"""Checksums that we verify, and how many hex digits each has."""


class DatasetKind(enum.StrEnum):
    """What a program finds at a dataset's path."""

    FILE = "file"
    DIRECTORY = "directory"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Checksum:
    """What the content must have, by which algorithm."""

    algorithm: str  #: one of ``ALGORITHMS``
    digest: str  #: lower-case hex digits

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.digest}"


def checksum(text: str) -> Checksum | None:
    """Read ``algorithm:hex`` or the bare 32 digits of an MD5. None for an empty text.

    Raises UserError that says what was found and what was expected.
    """
    if not text:
        return None
    algorithm, _, digest = text.rpartition(":")
    algorithm, digest = (algorithm or "md5").lower(), digest.lower()
    length = ALGORITHMS.get(algorithm)
    if length is None:
        known = ", ".join(ALGORITHMS)
        raise UserError(f"checksum: found the algorithm {algorithm!r}, expected one of: {known}")
    if len(digest) != length or not set(digest) <= set("0123456789abcdef"):
        raise UserError(f"checksum: found {digest!r}, expected {length} hex digits of {algorithm}")
    return Checksum(algorithm=algorithm, digest=digest)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """What somebody asks for: an entry of ``data.sources`` or ``server.models``."""

    uri: str
    checksum: Checksum | None = None  #: of the fetched file, before it is unpacked; None: unknown
    unpack: bool = False  #: whether the file is an archive whose content is wanted

    @property
    def key(self) -> DatasetKey:
        """Under which the cache holds it."""
        words = (self.uri, str(self.checksum or ""), "unpacked" if self.unpack else "")
        return DatasetKey(hashlib.sha256("\0".join(words).encode()).hexdigest())


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """What the cache holds. Its content is whole, verified, and never changes."""

    key: DatasetKey
    reference: Reference
    kind: DatasetKind
    path: str  #: where the content is on this machine; read-only
    digest: str  #: ``sha256:…`` of the file, or of the list of all files of a directory
    size_bytes: int
    files: int
    fetched_at: datetime
    used_at: datetime
    pinned_by: tuple[str, ...] = ()  #: runs that use it now; such a dataset is not evicted


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a transfer has come."""

    uri: str
    done_bytes: int
    total_bytes: int | None  #: None: the source does not tell


Report = Callable[[Progress], None]
"""Told now and then how a transfer goes on; must not block."""


def shown(uri: str) -> str:
    """A URI as people may see it: without a password, and without a signature in its query."""
    scheme, mark, rest = uri.partition(":")
    if not scheme_of(uri):
        return uri
    # Keys of buckets may have a number sign in them; in an address of the web it ends the path.
    ends = "[?#]" if scheme.lower() in _WEB else "[?]"
    plain, *more = re.split(f"({ends})", rest, maxsplit=1)
    if plain.startswith("//"):
        authority, slash, path = plain[2:].partition("/")
        plain = f"//{authority.rpartition('@')[2]}{slash}{path}"
    return f"{scheme}{mark}{plain}{f'{more[0]}…' if more else ''}"


def scheme_of(uri: str) -> str:
    """How the URI is to be read, in lower case; empty for a plain path."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", uri)
    return found[1].lower() if found else ""


def refuse_secrets(uri: str) -> None:
    """Raise DatasetInvalid if a password is written in the URI.

    Descriptors are stored, shown and shared. The message does not repeat the URI, which may hold
    the password where ``shown`` does not expect it, such as behind a slash of its own.
    """
    scheme, mark, rest = uri.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    # user:pass/word@host: an authority ends with its first slash, a careless writer's does not.
    odd = not at and "@" in rest and not _ends_in_port(authority)
    if mark and (":" in user or odd):
        raise DatasetInvalid(
            f"a URI that begins with {scheme}:// has a password in it, as in user:password@host. "
            f"Expected none: {_PLACES.get(scheme.lower(), _ELSEWHERE)}"
        )

    _refuse_signature(scheme.lower(), rest)


def _refuse_signature(scheme: str, rest: str) -> None:
    """A signed address of a bucket belongs to https; behind another scheme it would be a key."""
    if scheme in _BUCKETS and _SIGNATURE.search(rest):
        raise DatasetInvalid(
            f"a URI that begins with {scheme}:// has a signature in it, as a signed address has. "
            f"Expected none: write the whole https:// address, or {_PLACES[scheme]}"
        )


def _ends_in_port(authority: str) -> bool:
    port = authority.rpartition(":")[2]
    return ":" not in authority or port.endswith("]") or (port.isascii() and port.isdigit())


_WEB = frozenset({"http", "https"})
_BUCKETS = frozenset({"s3", "gs", "az"})
_SIGNATURE = re.compile(r"[?&](?:sig|(?:x-amz-|x-goog-)?signature)=", re.IGNORECASE)
_NETRC = (
    "put user and password into ~/.netrc of the account that fetches (or a file that NETRC names)"
)
_PLACES = {
    "ftp": _NETRC,
    "ftps": _NETRC,
    "http": _NETRC,
    "https": f"{_NETRC}, or use a signed URL",
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, where data is fetched",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to the name of a key file, where data is fetched",
    "az": "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, where data is fetched",
}
_ELSEWHERE = "give it to the process that fetches, in its environment or a file of credentials"
