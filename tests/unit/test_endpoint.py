"""Endpoints are read in every form people write them, and never show a token."""

from __future__ import annotations

import pytest

from anubis.domain.endpoint import Endpoint
from anubis.domain.errors import UserError


@pytest.mark.parametrize(
    ("text", "shown", "url"),
    [
        ("localhost:8080", "localhost:8080", "http://localhost:8080"),
        (" Bench.Example:80 \n", "bench.example:80", "http://bench.example:80"),
        ("http://bench.example", "bench.example:80", "http://bench.example:80"),
        ("http://10.0.0.7:8080/", "10.0.0.7:8080", "http://10.0.0.7:8080"),
        ("https://bench.example", "https://bench.example:443", "https://bench.example:443"),
        ("https://bench.example:8443", "https://bench.example:8443", "https://bench.example:8443"),
        ("[::1]:8080", "[::1]:8080", "http://[::1]:8080"),
        ("me:anb_secret@bench:8080", "bench:8080", "http://bench:8080"),
        ("https://me:anb_secret@bench", "https://bench:443", "https://bench:443"),
    ],
)
def test_an_endpoint_has_one_spelling(text: str, shown: str, url: str) -> None:
    endpoint = Endpoint.parse(text)
    assert (str(endpoint), endpoint.url) == (shown, url)
    assert Endpoint.parse(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    "text", ["", "localhost", "ftp://a:1", "a:b:c", "a:99999", "a:0", "http://", "a b:1", "a:1/x"]
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="endpoint: found"):
        Endpoint.parse(text)


def test_a_token_moves_out_of_sight() -> None:
    endpoint = Endpoint.parse("me:anb_secret@bench:8080")
    assert endpoint.token == "anb_secret"
    assert "anb_secret" not in f"{endpoint} {endpoint!r}"
    with pytest.raises(UserError) as refused:
        Endpoint.parse("me:anb_secret@bench:8080/nowhere")
    assert "anb_secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "is_loopback"),
    [("localhost:1", True), ("127.1.2.3:1", True), ("[::1]:1", True), ("bench:1", False)],
)
def test_this_machine_is_known_by_its_names(text: str, is_loopback: bool) -> None:
    assert Endpoint.parse(text).is_loopback is is_loopback
