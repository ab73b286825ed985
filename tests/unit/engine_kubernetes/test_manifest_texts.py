"""What Kubernetes would replace in a text reaches the program as it is."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import example, given
from hypothesis import strategies as st

from anubis.adapters.engine.kubernetes.manifests import texts

VARIABLES = {"HOME": "/root", "X": "$(HOME)", "": "nothing"}
TEXTS = st.text(alphabet=st.sampled_from(list("$()XHOME a")), max_size=20)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """What Kubernetes makes of a text: ``third_party/forked/golang/expansion/expand.go``."""
    result, start, place = "", 0, 0
    while place < len(text):
        if text[place] == "$" and place + 1 < len(text):
            result += text[start:place]
            read, is_variable, length = _read(text[place + 1 :])
            result += variables.get(read, f"$({read})") if is_variable else read
            place += length
            start = place + 1
        place += 1
    return result + text[start:]


def _read(text: str) -> tuple[str, bool, int]:
    if text[0] == "$":
        return "$", False, 1
    if text[0] == "(":
        end = text.find(")")
        return (text[1:end], True, end + 1) if end > 0 else ("$(", False, 1)
    return "$" + text[0], False, 1


@example("$")
@example("$$")
@example("$$(X)")
@example("$$$(X)")
@example("$(X")
@example("$()")
@given(TEXTS)
def test_a_program_gets_the_very_text_of_its_plan(text: str) -> None:
    assert expanded(texts.verbatim(text), VARIABLES) == text


@given(st.text(alphabet=st.characters(exclude_characters="$")))
def test_a_text_without_dollars_is_not_touched(text: str) -> None:
    assert texts.verbatim(text) == text


def test_kubernetes_replaces_what_is_meant_to_be_replaced() -> None:
    assert expanded(f"worker-{texts.variable('X')}", {"X": "3"}) == "worker-3"
