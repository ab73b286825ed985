"""``[kubernetes]``: what a cluster would refuse is refused before, at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.domain.descriptor import Kubernetes
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.domain.plan import Toleration
from anubis.stages.descriptor.parsing import parse

HEAD = 'spec_version = "0.1.0"\ninfo.description = "d"\n[kubernetes]\n'


def read(text: str) -> Kubernetes:
    document = Document(name="f.toml", directory="", content=(HEAD + text).encode())
    return parse(document).descriptor.kubernetes


def told(text: str) -> list[str]:
    with pytest.raises(DescriptorInvalid) as caught:
        read(text)
    return [str(problem) for problem in caught.value.problems]


def test_all_of_it_may_be_left_out() -> None:
    assert read("") == Kubernetes()


def test_what_is_written_is_read() -> None:
    found = read(
        """
node_selector = { "example.org/pool" = "bench", quiet = "" }
tolerations = [{ key = "a", value = "b", effect = "NoSchedule" }, { operator = "Exists" }]
annotations = { "example.org/note" = "any text: é" }
service_account = "bench"
image_pull_secrets = ["one.example.org"]
priority_class = "high"
runtime_class = "nvidia"
"""
    )
    assert found == Kubernetes(
        node_selector={"example.org/pool": "bench", "quiet": ""},
        tolerations=(
            Toleration(key="a", value="b", effect="NoSchedule"),
            Toleration(operator="Exists"),
        ),
        annotations={"example.org/note": "any text: é"},
        service_account="bench",
        image_pull_secrets=("one.example.org",),
        priority_class="high",
        runtime_class="nvidia",
    )


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("node_selector = {'a//b' = 'c'}", "4:18", "after a domain and '/' if it has one"),
        ("node_selector = {a = 'b/c'}", "4:22", 'found the text "b/c"'),
        ("annotations = {'-a' = 'c'}", "4:16", 'found the name "-a"'),
        ("service_account = 'Bench'", "4:19", "expected the name of a Kubernetes object"),
        ("image_pull_secrets = ['a', 'b_c']", "4:28", "image_pull_secrets[1]"),
        ("tolerations = [{key = 'a', operator = 'exists'}]", "4:39", "did you mean 'Exists'?"),
        (
            "tolerations = [{key = 'a', effect = 'noschedule'}]",
            "4:37",
            "did you mean 'NoSchedule'?",
        ),
        ("tolerations = [{value = 'a'}]", "4:16", "a toleration without a key"),
        (
            "tolerations = [{key = 'a', operator = 'Exists', value = 'b'}]",
            "4:49",
            "expected no value",
        ),
        ("tolerations = {key = 'a'}", "4:15", "write [[kubernetes.tolerations]]"),
        ("nodeSelector = {}", "4:1", "did you mean 'node_selector'?"),
    ],
)
def test_what_a_cluster_would_refuse_is_told_with_its_place(
    text: str, place: str, words: str
) -> None:
    (line,) = told(text)
    assert line.startswith(f"f.toml:{place}: ")
    assert words in line


def test_names_are_no_longer_than_a_cluster_takes() -> None:
    name, domain = "a" * 63, "b" * 253
    assert read(f"node_selector = {{'{domain}/{name}' = '{name}'}}").node_selector
    for text in (
        f"node_selector = {{'{name}a' = ''}}",
        f"node_selector = {{'{domain}b/a' = ''}}",
        f"node_selector = {{a = '{name}a'}}",
        f"service_account = '{domain}b'",
    ):
        assert told(text)


def test_annotations_are_no_larger_than_a_cluster_takes() -> None:
    assert read(f"annotations = {{a = '{'x' * 262_143}'}}").annotations
    (line,) = told(f"annotations = {{a = '{'é' * 131_072}'}}")
    assert "found annotations of 262,145 bytes, expected at most 262,144 bytes" in line


names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(domain=names, name=names, value=names)
def test_every_legal_label_selects_nodes(domain: str, name: str, value: str) -> None:
    key = f"{domain}.{domain}/{name}"
    found = read(f"node_selector = {{'{key}' = '{value}'}}\nservice_account = '{domain}.{name}'")
    assert found.node_selector == {key: value}
    assert found.service_account == f"{domain}.{name}"


def test_other_engines_have_no_use_for_it_and_no_objection() -> None:
    """The same descriptor runs everywhere."""
    document = Document(
        name="f.toml", directory="", content=(HEAD + "service_account = 'a'").encode()
    )
    assert parse(document).warnings == ()
