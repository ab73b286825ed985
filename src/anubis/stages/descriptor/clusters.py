"""The table ``[kubernetes]``: which nodes of a cluster, and as whom.

Names follow the syntax of Kubernetes, so that what a cluster would refuse is told with its place in
the file, before anything is submitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from anubis.domain.descriptor import Kubernetes, TaintEffect, TolerationOperator
from anubis.domain.plan import Toleration
from anubis.stages.descriptor.kinds import TEXT, Scalar, Unacceptable, as_text, choice
from anubis.stages.descriptor.notations import LABEL_NAME, LABEL_VALUE
from anubis.stages.descriptor.reporting import Place
from anubis.stages.descriptor.shapes import Key, ListOf, MapOf, Table

MOST_TOLERATIONS: Final = 100
"""More taints than any node has."""

MOST_SECRETS: Final = 20
"""More registries than one image comes from."""

MOST_ANNOTATION_BYTES: Final = 256 * 1024
"""What Kubernetes takes for all annotations of an object together."""

_LONGEST_DOMAIN: Final = 253
_LONGEST_NAME: Final = 63
_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN: Final = rf"{_PART}(\.{_PART})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def _object_name(value: object, _place: Place) -> str:
    text = as_text(value)
    if len(text) > _LONGEST_DOMAIN or not re.fullmatch(_DOMAIN, text):
        raise Unacceptable
    return text


OBJECT_NAME: Final = Scalar(
    expected="the name of a Kubernetes object: small letters, digits, '-' and '.'",
    convert=_object_name,
    schema={"type": "string", "maxLength": _LONGEST_DOMAIN, "pattern": f"^{_DOMAIN}$"},
)


def _qualified(value: object, _place: Place) -> str:
    text = as_text(value)
    prefix, slash, name = text.rpartition("/")
    if len(name) > _LONGEST_NAME or not re.fullmatch(_NAME, name):
        raise Unacceptable
    if slash and (len(prefix) > _LONGEST_DOMAIN or not re.fullmatch(_DOMAIN, prefix)):
        raise Unacceptable
    return text


QUALIFIED_NAME: Final = Scalar(
    expected=f"{LABEL_NAME.expected}, after a domain and '/' if it has one",
    convert=_qualified,
    schema={
        "type": "string",
        "maxLength": _LONGEST_DOMAIN + 1 + _LONGEST_NAME,
        "pattern": f"^({_DOMAIN}/)?{_NAME}$",
    },
)
OPTIONAL_QUALIFIED_NAME: Final = Scalar(
    expected=f"nothing, or {QUALIFIED_NAME.expected}",
    convert=lambda value, place: "" if value == "" else _qualified(value, place),
    schema={"anyOf": [{"const": ""}, QUALIFIED_NAME.schema]},
)


def _a_toleration_is_one(table: Mapping[str, object], place: Place) -> None:
    exists = table.get("operator") == TolerationOperator.EXISTS
    if exists and table.get("value"):
        place.child("value").refuse_key(
            'a value beside operator = "Exists"', "no value: whatever it is, it is tolerated"
        )
    if not exists and not table.get("key"):
        place.refuse('a toleration without a key and without operator = "Exists"', "one of them")


_TOLERATION: Final = Table(
    make=Toleration,
    keys=(
        Key(
            name="key",
            kind=OPTIONAL_QUALIFIED_NAME,
            meaning='The taint\'s key; none, with operator = "Exists": every taint.',
        ),
        Key(
            name="operator",
            kind=choice(TolerationOperator),
            meaning="Whether the taint's value must be the same, or the key is enough.",
        ),
        Key(name="value", kind=LABEL_VALUE, meaning="The taint's value."),
        Key(name="effect", kind=choice(TaintEffect), meaning="The taint's effect; none: each."),
    ),
    rules=(_a_toleration_is_one,),
)


def _annotations_fit(table: Mapping[str, object], place: Place) -> None:
    annotations = table.get("annotations")
    if not isinstance(annotations, dict):
        return
    texts = (text for pair in annotations.items() for text in pair if isinstance(text, str))
    size = sum(len(text.encode()) for text in texts)
    if size > MOST_ANNOTATION_BYTES:
        expected = f"at most {MOST_ANNOTATION_BYTES:,} bytes"
        place.child("annotations").refuse(f"annotations of {size:,} bytes", expected)


KUBERNETES_TABLE: Final = Table(
    make=Kubernetes,
    keys=(
        Key(
            name="node_selector",
            kind=MapOf(key=QUALIFIED_NAME, value=LABEL_VALUE, expected="a table of texts"),
            meaning="Labels that a node must have.",
        ),
        Key(
            name="tolerations",
            kind=ListOf(item=_TOLERATION, expected="a list of tolerations", most=MOST_TOLERATIONS),
            meaning="Taints of nodes that do not keep the run away.",
        ),
        Key(
            name="annotations",
            kind=MapOf(key=QUALIFIED_NAME, value=TEXT, expected="a table of texts"),
            meaning="Annotations of the pods.",
        ),
        Key(
            name="service_account",
            kind=OBJECT_NAME,
            meaning="Whom the programs are to the cluster; what the installation says if absent.",
        ),
        Key(
            name="image_pull_secrets",
            kind=ListOf(item=OBJECT_NAME, expected="a list of names", most=MOST_SECRETS),
            meaning="Secrets with credentials for the image's registry.",
        ),
        Key(name="priority_class", kind=OBJECT_NAME, meaning="The pods' priority class."),
        Key(
            name="runtime_class",
            kind=OBJECT_NAME,
            meaning="The pods' runtime class, such as nvidia.",
        ),
    ),
    rules=(_annotations_fit,),
)
