"""What fetches says in the end reaches the engine, in whatever script, and however long it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine.kubernetes import standing
from anubis.adapters.engine.kubernetes.viewing import Termination
from anubis.domain.observation import EndCause
from anubis.entrypoints.pod.__main__ import MOST_BYTES, last_words


@given(
    message=st.text(max_size=50).flatmap(
        lambda text: st.integers(0, 500).map(lambda times: text * times)
    )
)
def test_a_message_of_any_kind_is_understood_and_fits(message: str) -> None:
    words = last_words(EndCause.DATA_INVALID, message)

    assert len(words) <= MOST_BYTES
    cause, said = standing._last_words(Termination(message=words.decode(), exit_code=1))
    assert cause is EndCause.DATA_INVALID
    assert message.encode("utf-8", "replace").decode().startswith(said)
    assert len(said) >= min(len(message), 600)
