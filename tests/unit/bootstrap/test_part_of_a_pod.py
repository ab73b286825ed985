"""The file that is laid over every pod is told apart from what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine.kubernetes.manifests import merging
from anubis.bootstrap import clusters
from anubis.domain.errors import UserError
from anubis.settings.model import Settings


def _read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    return clusters.terms(Settings(home=tmp_path, kubernetes_pod=path)).overlay


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected metadata and spec of a pod"),
        ("kind: Pod", "expected metadata and spec of a pod"),
        ("spec: 5", "spec: found '5', expected a table"),
        ("metadata: {annotations: {since: 2024-01-31}}", "metadata.annotations.since: found"),
        ("spec: {1: x}", "spec: found the key 1, expected a text"),
        ("spec: {x: .nan}", "spec.x: found nan"),
        ("spec: {containers: [{name: {a: b}}]}", "spec.containers.0.name: found"),
        ("spec: &itself {x: *itself}", "without an end"),
        (f"spec: {'[' * 3000}", "cannot be read"),
        ("spec: {", "cannot be read"),
        ("spec: 2024-99-99", "cannot be read"),
    ],
)
def test_what_no_cluster_could_be_told_is_refused_in_words(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(UserError, match=r"pod\.yaml") as refused:
        _read(tmp_path, text)

    assert words in str(refused.value)


def test_a_table_of_which_all_is_commented_out_takes_nothing_away(tmp_path: Path) -> None:
    assert _read(tmp_path, "metadata:\nspec:\n  # dnsPolicy: None\n") == {}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "containers", "env", "mountPath", "volumeMounts", "ip", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(whole=_JSON, part=_JSON)
def test_parts_of_any_shape_are_laid_over_wholes_of_any_shape(whole: object, part: object) -> None:
    laid = merging.merged({"spec": whole}, {"spec": part})

    assert set(laid) == {"spec"}
    assert merging.merged(laid, {"spec": part}) == laid
