"""Which service commands ask, and with which token: files in the home, shared with the original
client, and two variables that win over them.

``service_endpoint`` holds one ``host:port`` a line; the last line counts. The original client reads
and writes it too, so no token is ever put there: those are in ``tokens.toml``, for its owner only.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anubis.domain.errors import StoreUnusable, UserError
from anubis.settings import loading

if TYPE_CHECKING:
    from anubis.domain.endpoint import Endpoint

ENDPOINT, TOKEN, CA_FILE = "ANUBIS_ENDPOINT", "ANUBIS_TOKEN", "ANUBIS_CA_FILE"
LOCAL = ("", "local")
"""Values of ``ANUBIS_ENDPOINT`` that mean this machine, whatever is registered."""

REGISTERED, BACKUP, TOKENS = "service_endpoint", "service_endpoint.bak", "tokens.toml"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """A service that commands ask."""

    endpoint: Endpoint
    token: str | None = dataclasses.field(default=None, repr=False)
    ca_file: Path | None = None  #: certificates of the authority that signed the service's


def in_force(environ: Mapping[str, str]) -> Connection | None:
    """The service that commands ask now; None: they work on this machine.

    Raises UserError for an endpoint that cannot be read: nothing is done elsewhere than wanted.
    """
    chosen = environ.get(ENDPOINT)
    if chosen is not None:
        text, source = "" if chosen.strip().lower() in LOCAL else chosen, ENDPOINT
    else:
        home = loading.home(environ)
        text, source = current(home) or "", str(home / REGISTERED)
    return connection(text, environ, source=source) if text else None


def connection(text: str, environ: Mapping[str, str], *, source: str) -> Connection:
    """How to speak to a service of this name, which ``source`` gave. Raises UserError."""
    # Here and not above: most commands ask no service, and none of them should pay for reading one.
    from anubis.domain.endpoint import Endpoint

    try:
        endpoint = Endpoint.parse(text)
    except UserError as error:
        raise UserError(f"{source}: {error}") from error
    stored = _tokens(loading.home(environ)).get(str(endpoint))
    ca_file = environ.get(CA_FILE)
    return Connection(
        endpoint=endpoint,
        token=environ.get(TOKEN) or endpoint.token or stored,
        ca_file=Path(ca_file).expanduser() if ca_file else None,
    )


def registered(home: Path) -> list[str]:
    """Every endpoint, the oldest first; the last one is the current one."""
    path = home / REGISTERED
    try:
        lines = path.read_text("utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, PermissionError) and not os.access(home, os.R_OK | os.X_OK):
            return []  # not our home at all, which whoever opens it explains better
        raise UserError(f"{path} cannot be read: {_why(error)}") from error
    return [line.strip() for line in lines if line.strip()]


def current(home: Path) -> str | None:
    """The endpoint that commands ask, as it is written down."""
    lines = registered(home)
    return lines[-1] if lines else None


def register(home: Path, endpoint: Endpoint, token: str | None) -> None:
    """Make an endpoint the current one, and keep the token for it if there is one."""
    others = [line for line in registered(home) if not _means(line, endpoint)]
    _write(home / REGISTERED, "".join(f"{line}\n" for line in [*others, str(endpoint)]))
    if token:
        _keep(home, {**_tokens(home), str(endpoint): token})


def unregister(home: Path, endpoint: Endpoint) -> bool:
    """Forget an endpoint and its token; False if it was not registered. The one before it counts
    again, as with the original client, which also left the old file behind as ``.bak``.
    """
    lines = registered(home)
    left = [line for line in lines if not _means(line, endpoint)]
    if left == lines:
        return False
    _write(home / BACKUP, "".join(f"{line}\n" for line in lines))
    _write(home / REGISTERED, "".join(f"{line}\n" for line in left))
    tokens = _tokens(home)
    if tokens.pop(str(endpoint), None) is not None:
        _keep(home, tokens)
    return True


def _means(line: str, endpoint: Endpoint) -> bool:
    try:
        return type(endpoint).parse(line) == endpoint
    except UserError:
        return False


def _tokens(home: Path) -> dict[str, str]:
    path = home / TOKENS
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(
            f"{path} cannot be read: {_why(error)}; register the service again"
        ) from error
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _why(error: OSError | ValueError) -> str:
    """An error in a few words: the path of its file is told already."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _keep(home: Path, tokens: Mapping[str, str]) -> None:
    lines = [f"{json.dumps(name)} = {json.dumps(token)}\n" for name, token in tokens.items()]
    _write(
        home / TOKENS, "".join(["# Written by 'anubis register'. For your eyes only.\n", *lines])
    )


def _write(path: Path, text: str) -> None:
    """Replace a file at once, so that whoever reads it meanwhile finds the old or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600, exist_ok=False)  # nobody else may read it at any moment
        draft.write_text(text, "utf-8")
        draft.replace(path)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be written: {error.strerror}") from error
