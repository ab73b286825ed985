"""The descriptor's JSON Schema, for editors that complete and check while one writes.

It says as much as JSON Schema can say; a document that it accepts may still have problems only the
parser sees (a pattern that is no regular expression, quotes that are not balanced).
"""

from __future__ import annotations

from typing import Final

from anubis.domain.descriptor import Strategy
from anubis.stages.descriptor.grammar import DESCRIPTOR
from anubis.stages.descriptor.kinds import Schema

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> Schema:
    """A schema of draft 2020-12, made anew for every caller."""
    return {
        "$schema": DIALECT,
        "title": "Anubis descriptor",
        "description": "One benchmark: what to run, where, and what to measure.",
        **DESCRIPTOR.schema,
        **_inference_needs_a_server(),
    }


def _inference_needs_a_server() -> Schema:
    measured = {"enum": [Strategy.INFERENCE.value, "client_server"]}
    hardware = {"properties": {"strategy": measured}, "required": ["strategy"]}
    return {
        "if": {"properties": {"hardware": hardware}, "required": ["hardware"]},
        "then": {"required": ["server"]},
    }
