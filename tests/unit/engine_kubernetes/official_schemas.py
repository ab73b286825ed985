"""The official schemas of Kubernetes and of the MPI operator.

They lie in the cache of Go's modules where a cluster was built (``make cluster``); a copy in the
tree would be megabytes that grow old. What they do not know is refused, as an API server does that
is asked to be strict.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml
from tests import real_parts

MODULES = Path(os.environ.get("GOMODCACHE", "~/go/pkg/mod")).expanduser()
DOCUMENTS = {"v1": "api__v1_openapi.json", "batch/v1": "apis__batch__v1_openapi.json"}
MPI_JOB = "kubeflow.org/v2beta1"


def complaint(manifest: Mapping[str, Any]) -> str:
    """What the schema of its kind says against an object; empty if nothing."""
    validator = _validator(str(manifest["apiVersion"]), str(manifest["kind"]))
    return "; ".join(
        f"{'.'.join(map(str, error.instance_path))}: {error.message}"
        for error in validator.iter_errors(manifest)
    )


@functools.cache
def _validator(version: str, kind: str) -> jsonschema_rs.Draft202012Validator:
    schema = _of_operator() if version == MPI_JOB else _of_kubernetes(version, kind)
    return jsonschema_rs.Draft202012Validator(_strict(schema))


def _of_kubernetes(version: str, kind: str) -> Mapping[str, Any]:
    folder = _newest("k8s.io", "kubernetes@")
    document = json.loads((folder / "api/openapi-spec/v3" / DOCUMENTS[version]).read_text())
    group = "core" if version == "v1" else version.partition("/")[0]
    name = f"io.k8s.api.{group}.{version.rpartition('/')[2]}.{kind}"
    return {**document, "$ref": f"#/components/schemas/{name}"}


def _of_operator() -> Mapping[str, Any]:
    folder = _newest("github.com/kubeflow", "mpi-operator@")
    definition = yaml.safe_load((folder / "manifests/base/kubeflow.org_mpijobs.yaml").read_text())
    versions = {
        one["name"]: one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"]
    }
    schema: Mapping[str, Any] = versions[MPI_JOB.rpartition("/")[2]]
    return schema


def _newest(owner: str, start: str) -> Path:
    found = sorted((MODULES / owner).glob(f"{start}*"))
    real_parts.need(
        found, f"the official schemas are not there: {MODULES / owner}/{start}* (make cluster)"
    )
    return found[-1]


def _strict(schema: Any) -> Any:
    """The schema with nothing allowed that it does not name."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _strict(value) for key, value in schema.items() if key != "format"}
    if schema.get("x-kubernetes-int-or-string"):
        return {}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields")
    if (
        isinstance(schema.get("properties"), dict)
        and schema.get("type") == "object"
        and not is_open
    ):
        result.setdefault("additionalProperties", False)
    if schema.get("type") == "object" and "metadata" in result.get("properties", {}):
        metadata = result["properties"]["metadata"]
        if metadata == {"type": "object"}:
            result["properties"]["metadata"] = {}
    return result
