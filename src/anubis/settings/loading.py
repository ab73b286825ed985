"""Read the settings, once, from the environment and ``<home>/config.toml``.

Environment variables win over the file. Plain dataclasses instead of pydantic-settings: every
command reads settings, and importing pydantic takes longer than most commands do in all.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from anubis.domain import size
from anubis.domain.errors import StoreUnusable, UserError
from anubis.settings.model import Settings

MOST_SLOTS = 256
"""Each run holds three pipes open, and a process may usually have 1,024 open files."""

MOST_PODS = 10_000
"""Runs at a cluster at once: each takes a connection while it runs."""

MOST_CPUS, MOST_GPUS = 8192, 1024
"""More than any one machine has."""

MOST_ACTIVE = 10_000_000
"""A quota above this limits nothing."""

MOST_SCHEDULES = 1_000_000
"""As above."""

MOST_DAYS = 36_500
"""A century."""

MOST_STREAMS = 100_000
"""More than one machine has ports for, as seen by one client."""


def load(environ: Mapping[str, str]) -> Settings:
    """Give the settings in force. Raises UserError that names the variable or file and key.

    Raises StoreUnusable if the home belongs to somebody else.
    """
    place = home(environ)
    written = _file(place)
    given: dict[str, Any] = {}
    for key in _KEYS:
        if key.variable in environ:
            given[key.field] = key.read("environment", key.variable, environ[key.variable])
        elif key.field in written:
            given[key.field] = key.read(str(place / "config.toml"), key.field, written[key.field])
    if "docker_host" not in given and (elsewhere := environ.get("DOCKER_HOST")):
        given["docker_host"] = (
            elsewhere  # Docker's own variable; what it names is the engine's care
        )
    if "kubeconfig" not in given and (elsewhere := environ.get("KUBECONFIG")):
        given["kubeconfig"] = elsewhere  # kubectl's own variable
    return Settings(home=place, **given)


def home(environ: Mapping[str, str]) -> Path:
    """Where everything is kept; it need not exist."""
    text = environ.get("ANUBIS_HOME", "")
    if text:
        return Path(text).expanduser().absolute()
    try:
        return Path.home() / ".anubis"
    except RuntimeError:
        raise UserError("no home directory is known; set ANUBIS_HOME to a folder") from None


def _file(place: Path) -> Mapping[str, Any]:
    path = place / "config.toml"
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as error:
        if os.access(place, os.R_OK | os.X_OK):
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        raise StoreUnusable(
            f"the home {place} cannot be read ({error.strerror}): set ANUBIS_HOME to a folder of "
            "your own"
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    known = {key.field for key in _KEYS}
    if unknown := sorted(set(values) - known):
        raise UserError(f"{path}: unknown key {unknown[0]!r}; expected one of {sorted(known)}")
    return values


def _whole(least: int, most: int) -> Callable[[object], int]:
    def convert(value: object) -> int:
        if isinstance(value, bool) or not least <= (number := int(str(value))) <= most:
            raise ValueError
        return number

    return convert


def _cpus(value: object) -> float:
    if isinstance(value, bool) or not 0 < (number := float(str(value))) <= MOST_CPUS:
        raise ValueError
    return number


def _size(value: object) -> int:
    number = None if isinstance(value, bool) else size.read(str(value))
    if number is None or not 0 < number < 2**63:
        raise ValueError
    return number


def _seconds(value: object) -> timedelta:
    if isinstance(value, bool) or not 1 <= (number := float(str(value))) <= 86_400:
        raise ValueError
    return timedelta(seconds=number)


def _host(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _port(value: object) -> int:
    if isinstance(value, bool) or not 0 <= (number := int(str(value))) <= 65_535:
        raise ValueError
    return number


def _path(value: object) -> Path:
    if not isinstance(value, str) or not value:
        raise ValueError
    return Path(value).expanduser().absolute()


def _flag(value: object) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]


def _docker_host(value: object) -> str:
    text = str(value)
    is_local = text.startswith("unix:///") and len(text) > len("unix:///")
    is_network = text.startswith("tcp://") and text.rpartition(":")[2].rstrip("/").isdigit()
    if text != "none" and not is_local and not is_network:
        raise ValueError
    return text


def _presence(value: object) -> str:
    return {name: name for name in ("auto", "none")}[str(value)]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError
    return value.strip()


def _name(value: object) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", str(value)):
        raise ValueError
    return str(value)


def _engines(value: object) -> str:
    names = [name.strip() for name in str(value).split(",")]
    if not set(names) <= {"process", "docker", "kubernetes"} or len(set(names)) < len(names):
        raise ValueError
    return ",".join(names)


def _node_path(value: object) -> str:
    if not str(value).startswith("/") or ".." in str(value).split("/"):
        raise ValueError
    return str(value)


def _node_datasets(value: object) -> str:
    text = str(value)
    if text == "none":
        return text
    kind, _, claim = text.partition(":")
    return f"pvc:{_name(claim)}" if kind == "pvc" else _node_path(text)


def _policy(value: object) -> str:
    return {name: name for name in ("always", "missing", "never")}[str(value)]


def _rate(value: object) -> float:
    if isinstance(value, bool) or not 0.1 <= (number := float(str(value))) <= 1e6:
        raise ValueError
    return number


def _burst(value: object) -> int:
    if isinstance(value, bool) or not 1 <= (number := int(str(value))) <= 1_000_000:
        raise ValueError
    return number


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Key:
    variable: str
    field: str
    expected: str
    convert: Callable[[object], Any]

    def read(self, source: str, key: str, value: object) -> Any:
        try:
            return self.convert(value)
        except (KeyError, TypeError, ValueError, OverflowError):
            text = f"{source}: {key}: found {value!r}, expected {self.expected}"
            raise UserError(text) from None


_A_DAY = "a number of seconds from 1 to 86400"
_DAYS = f"a whole number of days from 1 to {MOST_DAYS}"
_KEYS = (
    _Key(
        variable="ANUBIS_SLOTS",
        field="slots",
        expected=f"a whole number from 1 to {MOST_SLOTS}",
        convert=_whole(1, MOST_SLOTS),
    ),
    _Key(
        variable="ANUBIS_CPUS",
        field="cpus",
        expected=f"a number above 0, up to {MOST_CPUS}",
        convert=_cpus,
    ),
    _Key(
        variable="ANUBIS_MEMORY",
        field="memory",
        expected='bytes, or text such as "16GiB"',
        convert=_size,
    ),
    _Key(
        variable="ANUBIS_GPUS",
        field="gpus",
        expected=f"a whole number from 0 to {MOST_GPUS}",
        convert=_whole(0, MOST_GPUS),
    ),
    _Key(
        variable="ANUBIS_MAX_ACTIVE",
        field="max_active_per_user",
        expected=f"a whole number from 1 to {MOST_ACTIVE}",
        convert=_whole(1, MOST_ACTIVE),
    ),
    _Key(
        variable="ANUBIS_MAX_SCHEDULES",
        field="max_schedules_per_user",
        expected=f"a whole number from 1 to {MOST_SCHEDULES}",
        convert=_whole(1, MOST_SCHEDULES),
    ),
    _Key(variable="ANUBIS_LEASE_SECONDS", field="lease", expected=_A_DAY, convert=_seconds),
    _Key(variable="ANUBIS_IDLE_SECONDS", field="idle_exit", expected=_A_DAY, convert=_seconds),
    _Key(variable="ANUBIS_HOST", field="host", expected="a name or an address", convert=_host),
    _Key(
        variable="ANUBIS_PORT",
        field="port",
        expected="a whole number from 0 to 65535",
        convert=_port,
    ),
    _Key(
        variable="ANUBIS_TLS_CERTIFICATE",
        field="tls_certificate",
        expected="the path of a file",
        convert=_path,
    ),
    _Key(variable="ANUBIS_TLS_KEY", field="tls_key", expected="the path of a file", convert=_path),
    _Key(
        variable="ANUBIS_REQUIRE_TOKENS",
        field="requires_tokens",
        expected="true or false",
        convert=_flag,
    ),
    _Key(
        variable="ANUBIS_LEADER_LEASE",
        field="leader_lease",
        expected="the name of a Lease",
        convert=_name,
    ),
    _Key(
        variable="ANUBIS_ENGINES",
        field="engines",
        expected="some of process, docker and kubernetes, with commas between them",
        convert=_engines,
    ),
    _Key(
        variable="ANUBIS_RATE_LIMIT",
        field="rate_limit",
        expected="a number from 0.1 to 1000000",
        convert=_rate,
    ),
    _Key(
        variable="ANUBIS_RATE_BURST",
        field="rate_burst",
        expected="a whole number from 1 to 1000000",
        convert=_burst,
    ),
    _Key(
        variable="ANUBIS_MAX_STREAMS",
        field="max_streams",
        expected=f"a whole number from 1 to {MOST_STREAMS}",
        convert=_whole(1, MOST_STREAMS),
    ),
    _Key(
        variable="ANUBIS_AUDIT_DAYS",
        field="audit_days",
        expected=_DAYS,
        convert=_whole(1, MOST_DAYS),
    ),
    _Key(
        variable="ANUBIS_SCRIPTS_DAYS",
        field="scripts_days",
        expected=_DAYS,
        convert=_whole(1, MOST_DAYS),
    ),
    _Key(
        variable="ANUBIS_SCRIPTS_SIZE",
        field="scripts_bytes",
        expected='bytes, or text such as "20GiB"',
        convert=_size,
    ),
    _Key(
        variable="ANUBIS_DATASETS",
        field="datasets",
        expected="the path of a folder",
        convert=_path,
    ),
    _Key(
        variable="ANUBIS_DATASETS_SIZE",
        field="datasets_bytes",
        expected='bytes, or text such as "500GiB"',
        convert=_size,
    ),
    _Key(
        variable="ANUBIS_LOCAL_DATA",
        field="local_data",
        expected="true or false",
        convert=_flag,
    ),
    _Key(
        variable="ANUBIS_DOCKER_HOST",
        field="docker_host",
        expected="unix:///path, tcp://host:port, or none",
        convert=_docker_host,
    ),
    _Key(
        variable="ANUBIS_PULL",
        field="pull",
        expected="always, missing or never",
        convert=_policy,
    ),
    _Key(
        variable="ANUBIS_PRIVATE_NETWORKS",
        field="private_networks",
        expected="true or false",
        convert=_flag,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES",
        field="kubernetes",
        expected="auto or none",
        convert=_presence,
    ),
    _Key(
        variable="ANUBIS_KUBECONFIG",
        field="kubeconfig",
        expected="the path of a file",
        convert=_text,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_CONTEXT",
        field="kubernetes_context",
        expected="the name of a context",
        convert=_text,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_NAMESPACE",
        field="kubernetes_namespace",
        expected="the name of a namespace",
        convert=_name,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_IMAGE",
        field="kubernetes_image",
        expected="the name of an image",
        convert=_text,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_SLOTS",
        field="kubernetes_slots",
        expected=f"a whole number from 1 to {MOST_PODS}",
        convert=_whole(1, MOST_PODS),
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_DATASETS",
        field="kubernetes_datasets",
        expected="a folder of nodes, pvc:NAME, or none",
        convert=_node_datasets,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_SECRET",
        field="kubernetes_secret",
        expected="the name of a Secret",
        convert=_name,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_POD_LOGS",
        field="kubernetes_pod_logs",
        expected="a folder of nodes",
        convert=_node_path,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_POD",
        field="kubernetes_pod",
        expected="the path of a file",
        convert=_path,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_DOMAIN",
        field="kubernetes_domain",
        expected="a DNS domain",
        convert=_name,
    ),
    _Key(
        variable="ANUBIS_KUBERNETES_DRAIN_SECONDS",
        field="kubernetes_drain",
        expected=_A_DAY,
        convert=_seconds,
    ),
)
