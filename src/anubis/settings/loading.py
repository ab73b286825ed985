"""Read the settings, once, from the environment and ``<home>/config.toml``.

Environment variables win over the file. Plain dataclasses instead of pydantic-settings: every
command reads settings, and importing pydantic takes longer than most commands do in all.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from anubis.domain.errors import UserError
from anubis.settings.model import Settings


def load(environ: Mapping[str, str]) -> Settings:
    """Give the settings in force. Raises UserError that names the variable or file and key."""
    home = _home(environ)
    written = _file(home)
    given: dict[str, Any] = {}
    for key in _KEYS:
        if key.variable in environ:
            given[key.field] = key.read("environment", key.variable, environ[key.variable])
        elif key.field in written:
            given[key.field] = key.read(str(home / "config.toml"), key.field, written[key.field])
    return Settings(home=home, **given)


def _home(environ: Mapping[str, str]) -> Path:
    text = environ.get("ANUBIS_HOME", "")
    if text:
        return Path(text).expanduser().absolute()
    try:
        return Path.home() / ".anubis"
    except RuntimeError:
        raise UserError("no home directory is known; set ANUBIS_HOME to a folder") from None


def _file(home: Path) -> Mapping[str, Any]:
    path = home / "config.toml"
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    known = {key.field for key in _KEYS}
    if unknown := sorted(set(values) - known):
        raise UserError(f"{path}: unknown key {unknown[0]!r}; expected one of {sorted(known)}")
    return values


def _slots(value: object) -> int:
    if isinstance(value, bool) or not 1 <= (number := int(str(value))) <= 1024:
        raise ValueError
    return number


def _seconds(value: object) -> timedelta:
    if isinstance(value, bool) or not 1 <= (number := float(str(value))) <= 86_400:
        raise ValueError
    return timedelta(seconds=number)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Key:
    variable: str
    field: str
    expected: str
    convert: Callable[[object], Any]

    def read(self, source: str, key: str, value: object) -> Any:
        try:
            return self.convert(value)
        except (TypeError, ValueError, OverflowError):
            text = f"{source}: {key}: found {value!r}, expected {self.expected}"
            raise UserError(text) from None


_A_DAY = "a number of seconds from 1 to 86400"
_KEYS = (
    _Key(
        variable="ANUBIS_SLOTS",
        field="slots",
        expected="a whole number from 1 to 1024",
        convert=_slots,
    ),
    _Key(variable="ANUBIS_LEASE_SECONDS", field="lease", expected=_A_DAY, convert=_seconds),
    _Key(variable="ANUBIS_IDLE_SECONDS", field="idle_exit", expected=_A_DAY, convert=_seconds),
)
