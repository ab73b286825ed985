"""The grammar, the model, the page and the schema say the same."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import types
import typing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from anubis.domain import descriptor as model
from anubis.domain.document import Document
from anubis.stages.descriptor.parsing import parse
from anubis.stages.descriptor.reference import reference
from anubis.stages.descriptor.schema import DIALECT, json_schema
from anubis.stages.descriptor.walking import entries

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "descriptor.md"
DOCUMENTS = sorted((Path(__file__).parent / "documents").glob("*.toml"))
HEAD = 'spec_version = "0.1.0"\ninfo.description = "d"\n'


def fields_of(kind: Any, prefix: str = "") -> set[str]:
    """The dotted names of all fields of a dataclass and those inside it."""
    found: set[str] = set()
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name = {"output_bytes": "output_size", "memory_bytes": "memory"}.get(field.name, field.name)
        found.add(prefix + name)
        inner, suffix = inside(hints[field.name])
        if inner is not None:
            found |= fields_of(inner, f"{prefix}{name}{suffix}.")
    return found


def inside(hint: Any) -> tuple[Any, str]:
    """The dataclass a type holds, and how its path is written."""
    if dataclasses.is_dataclass(hint):
        return hint, ""
    arguments = typing.get_args(hint)
    for argument in arguments:
        if dataclasses.is_dataclass(argument):
            return argument, "" if isinstance(hint, types.UnionType) else "[]"
    return None, ""


def test_the_grammar_has_exactly_the_fields_of_the_model() -> None:
    assert {entry.path for entry in entries()} == fields_of(model.Descriptor)


def test_the_page_has_the_tables_of_the_language() -> None:
    page = PAGE.read_text("utf-8")
    assert page.endswith(reference() + "\n"), "docs/reference/descriptor.md is out of date"


def test_every_older_spelling_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    for entry in entries():
        for name in (*entry.key.formerly, *([entry.key.name] if entry.key.is_deprecated else [])):
            assert f"`{name}`" in page


def test_the_example_on_the_page_is_valid() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    parsed = parse(Document(name="page", directory="", content=example.encode()))
    assert parsed.warnings == ()


def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    assert schema["$schema"] == DIALECT
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_the_schema_accepts_every_valid_document(document: Path) -> None:
    validator().validate(tomllib.loads(document.read_text("utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        'spec_version = "0.1.0"',
        "spec_version = 1\ninfo.description = 'd'",
        HEAD + "unknown = 1",
        HEAD + "info.descripton = 'd'",
        HEAD + "info.scheduling = 'daily'",
        HEAD + "info.scheduling = '@daily'\nschedule.time_zone = '/etc/passwd'",
        HEAD + "info.scheduling = '@daily'\nschedule.overlap = 'never'",
        HEAD + "info.scheduling = '@daily'\nschedule.catch_up = 3",
        HEAD + "info.execution_engine = 'kubernets'",
        HEAD + "info.labels = {'-a' = 'b'}",
        HEAD + "info.labels = {a = 'b c'}",
        HEAD + "hardware.strategy = 'single'",
        HEAD + "hardware.strategy = 'inference'",
        HEAD + "hardware.niceness = 20",
        HEAD + "hardware.cpu_affinity = [-1]",
        HEAD + "hardware.cpus = 0",
        HEAD + "hardware.cpus = '4'",
        HEAD + "hardware.memory = 0",
        HEAD + "hardware.memory = 'much'",
        HEAD + "hardware.gpus = -1",
        HEAD + "hardware.gpus = 1.5",
        HEAD + "hardware.exclusive = 'yes'",
        HEAD + "info.priority = 101",
        HEAD + "info.priority = -101",
        HEAD + "limits.concurrency = 0",
        HEAD + "hardware.distributed.num_instances = '3'",
        HEAD + "hardware.distributed.processes_per_instance = 'gpu'",
        HEAD + "env.vars = {A = 1}",
        HEAD + "env.privileged = 'true'",
        HEAD + "env.ulimits = {memlok = 1}",
        HEAD + "env.ulimits = {memlock = -2}",
        HEAD + "env.ulimits = {memlock = '1'}",
        HEAD + "ml.script.script = 'code.zip'",
        HEAD + "data.sources = [{path = '/a'}]",
        HEAD + "data.sources = [{src = 'a', path = '/a', unpack = 'yes'}]",
        HEAD + "data.sources = [{src = 'a', uri = 'a', path = '/a'}]",
        HEAD + "output.metrics = [{name = 'a', units = 'b'}]",
        HEAD + "server.env = {ports = [0], start_command = ''}",
        HEAD + "server.env = {ports = [1], start_command = '', readiness_probe = 'ftp://x'}",
        HEAD + "server.hardware.cpus = 0",
        HEAD + "kubernetes.node_selector = {'/a' = 'b'}",
        HEAD + "kubernetes.node_selector = {'A.example.org/a' = 'b'}",
        HEAD + "kubernetes.node_selector = {a = 'b c'}",
        HEAD + "kubernetes.node_selector = {a = true}",
        HEAD + "kubernetes.annotations = {'a b' = 'c'}",
        HEAD + "kubernetes.annotations = {a = 1}",
        HEAD + "kubernetes.service_account = 'Me'",
        HEAD + "kubernetes.service_account = ''",
        HEAD + "kubernetes.image_pull_secrets = 'one'",
        HEAD + "kubernetes.image_pull_secrets = ['a_b']",
        HEAD + "kubernetes.priority_class = '-a'",
        HEAD + "kubernetes.runtime_class = 'a..b'",
        HEAD + "kubernetes.tolerations = [{key = 'a', operator = 'exists'}]",
        HEAD + "kubernetes.tolerations = [{key = 'a', effect = 'Never'}]",
        HEAD + "kubernetes.tolerations = [{key = 'a', values = 'b'}]",
        HEAD + "kubernetes.nodes = 3",
        HEAD + "limits.capacity = 0",
        HEAD + "limits.pulling = 'long'",
        HEAD + "limits.readiness = 0",
        HEAD + "limits.running = 0",
        HEAD + "limits.running = '10 parsecs'",
        HEAD + "limits.output_size = '10XB'",
    ],
)
def test_the_schema_refuses_what_the_parser_refuses(text: str) -> None:
    assert not validator().is_valid(tomllib.loads(text))
    with pytest.raises(Exception, match="expected"):
        parse(Document(name="f", directory="", content=text.encode()))


def test_every_property_of_the_schema_has_a_description() -> None:
    missing = [path for path, schema in properties(json_schema()) if not schema.get("description")]
    assert missing == []


def test_older_names_are_marked_in_the_schema() -> None:
    deprecated = {path for path, schema in properties(json_schema()) if schema.get("deprecated")}
    assert deprecated == {
        "info.task_name",
        "data.sources.uri",
        "server.models.uri",
        "server.env.liveliness_probe",
        "server.env.readiness_probe.timout_seconds",
        "server.env.liveness_probe.timout_seconds",
        "server.env.liveliness_probe.timout_seconds",
    }


def properties(schema: dict[str, Any], prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, child in schema.get("properties", {}).items():
        found.append((prefix + name, child))
        found.extend(properties(child, f"{prefix}{name}."))
        found.extend(properties(child.get("items", {}), f"{prefix}{name}."))
    for choice in schema.get("anyOf", []):
        found.extend(properties(choice, prefix))
    return found
