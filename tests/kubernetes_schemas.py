"""The official schemas of Kubernetes, and what is wrong with an object by them.

They are part of the source of Kubernetes (``api/openapi-spec/v3``), which building the test cluster
brings along; a cluster tells them too. Fields that they do not know are problems here: a real API
server drops those silently unless it is asked not to.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.protocols import Validator
from tests import real_parts

RELEASE = "v1.36.3"
"""Of Kubernetes, whose schemas count."""

KUBECONFIG = Path(
    os.environ.get("ANUBIS_TEST_KUBECONFIG", "~/.cache/anubis-cluster/kubeconfig")
).expanduser()


def problems(manifest: Mapping[str, Any]) -> Sequence[str]:
    """All that is wrong with an object, with where it is. Skips where no schemas can be had."""
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    found = _validator(api_version, kind).iter_errors(manifest)
    name = f"{kind} {manifest['metadata'].get('name')}"
    return [f"{name}: {'.'.join(map(str, one.absolute_path))}: {one.message}" for one in found]


@functools.cache
def _validator(api_version: str, kind: str) -> Validator:
    document = _document(api_version)
    schemas = document["components"]["schemas"]
    group, slash, version = api_version.rpartition("/")
    wanted = {"group": group if slash else "", "version": version, "kind": kind}
    [name] = [
        name
        for name, schema in schemas.items()
        if wanted in schema.get("x-kubernetes-group-version-kind", ())
    ]
    strict = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": _strict(schemas)}}
    return jsonschema.Draft202012Validator(strict)


def _strict(schema: Any) -> Any:
    """The same, where unknown fields of objects with known fields are refused, and null is allowed
    where Kubernetes says so in its own way.
    """
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in schema:
        made.setdefault("additionalProperties", False)
    if made.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    if isinstance(made.get("format"), str):
        del made["format"]  # int32, byte, date-time: not of JSON Schema
    return made


@functools.cache
def _document(api_version: str) -> Any:
    path = f"apis__{api_version.replace('/', '__')}" if "/" in api_version else "api__v1"
    file = _folder() / f"{path}_openapi.json"
    if file.is_file():
        return json.loads(file.read_text("utf-8"))
    address = f"/openapi/v3/{'apis/' if '/' in api_version else 'api/'}{api_version}"
    words = ["kubectl", "--kubeconfig", str(KUBECONFIG), "get", "--raw", address]
    try:
        told = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        told = subprocess.CompletedProcess(words, 1, "", "kubectl is not installed")
    real_parts.need(not told.returncode, f"no schemas of {api_version}: {told.stderr.strip()}")
    return json.loads(told.stdout)


@functools.cache
def _folder() -> Path:
    """Where Go keeps the source of Kubernetes; it need not exist."""
    try:
        told = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True)
    except FileNotFoundError:
        return Path("/nonexistent")
    return Path(told.stdout.strip()) / f"k8s.io/kubernetes@{RELEASE}/api/openapi-spec/v3"
