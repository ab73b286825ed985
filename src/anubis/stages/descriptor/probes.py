"""Probes: a table, or the URL that the original documented."""

from __future__ import annotations

import dataclasses
import urllib.parse
from collections.abc import Mapping

from anubis.domain.descriptor import Probe, ProbeScheme
from anubis.stages.descriptor import wording
from anubis.stages.descriptor.kinds import INVALID, Schema
from anubis.stages.descriptor.reporting import Place
from anubis.stages.descriptor.shapes import Table

_EXAMPLE = '{ path = "/ready", port = 8080 }'


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ProbeKind:
    """Reads both spellings into the same value."""

    table: Table
    expected: str = f"a table such as {_EXAMPLE}"

    def read(self, value: object, place: Place) -> object:
        """Text is taken for a URL; the host in it says nothing, a probe always asks the server."""
        if isinstance(value, str):
            return self._from_url(value, place)
        if isinstance(value, dict):
            return self.table.read(value, place)
        place.refuse(wording.described(value), self.expected)
        return INVALID

    def _from_url(self, text: str, place: Place) -> object:
        probe = _probe(text)
        if probe is None:
            hint = 'as a URL it would look like "http://localhost:8080/ready"'
            place.refuse(wording.described(text), self.expected, hint)
            return INVALID
        place.deprecate(wording.described(text), self.expected, "same meaning")
        return probe

    @property
    def schema(self) -> Schema:
        """Either spelling."""
        url = {"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "deprecated": True}
        return {"anyOf": [self.table.schema, url]}


def _probe(url: str) -> Probe | None:
    try:
        parts = urllib.parse.urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in set(ProbeScheme) or not parts.hostname or port == 0:
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Probe(scheme=ProbeScheme(parts.scheme), port=port, path=path)


def probes_name_a_port(table: Mapping[str, object], place: Place) -> None:
    """A rule: without ports of the server there is no default port for a probe."""
    if table.get("ports") != []:
        return
    for name in ("readiness_probe", "liveness_probe", "liveliness_probe"):
        if _lacks_a_port(table.get(name)):
            place.child(name).refuse_absence(
                "port", "a port", "the server has no ports to take the first of"
            )


def _lacks_a_port(written: object) -> bool:
    if isinstance(written, str):
        probe = _probe(written)
        return probe is not None and probe.port is None
    return isinstance(written, dict) and "port" not in written
