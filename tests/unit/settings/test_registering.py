"""Which service commands ask: the variable, else the file; tokens are kept apart from both."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from anubis.domain.endpoint import Endpoint
from anubis.domain.errors import StoreUnusable, UserError
from anubis.settings import original, registering

BENCH = Endpoint.parse("bench:8080")
OTHER = Endpoint.parse("https://other")


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"ANUBIS_HOME": str(home), **more}


def test_without_a_word_about_it_commands_work_here(tmp_path: Path) -> None:
    assert registering.in_force(environment(tmp_path / "nowhere")) is None
    assert registering.in_force(environment(Path("/dev/null/home"))) is None


def test_the_last_line_counts_and_registering_moves_a_line_to_the_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for endpoint in (BENCH, OTHER, BENCH):
        registering.register(home, endpoint, None)
    assert (home / "service_endpoint").read_text() == "https://other:443\nbench:8080\n"
    found = registering.in_force(environment(home))
    assert found is not None
    assert (found.endpoint, found.token, found.ca_file) == (BENCH, None, None)
    assert home.stat().st_mode & 0o777 == 0o700


def test_forgetting_one_goes_back_to_the_one_before(tmp_path: Path) -> None:
    registering.register(tmp_path, BENCH, "anb_b")
    registering.register(tmp_path, OTHER, "anb_o")
    assert registering.unregister(tmp_path, OTHER)
    assert not registering.unregister(tmp_path, OTHER)
    found = registering.in_force(environment(tmp_path))
    assert found is not None
    assert (found.endpoint, found.token) == (BENCH, "anb_b")
    assert "anb_o" not in (tmp_path / "tokens.toml").read_text()
    assert (tmp_path / "service_endpoint.bak").read_text() == "bench:8080\nhttps://other:443\n"


def test_a_file_of_the_original_client_is_understood(tmp_path: Path) -> None:
    (tmp_path / "service_endpoint").write_text("\nold:80\n  me:anb_x@bench:8080  \n\n")
    found = registering.in_force(environment(tmp_path))
    assert found is not None
    assert (found.endpoint, found.token) == (BENCH, "anb_x")
    registering.register(tmp_path, BENCH, None)
    assert (tmp_path / "service_endpoint").read_text() == "old:80\nbench:8080\n"


@pytest.mark.parametrize("text", ["", "local", " LOCAL "])
def test_the_variable_can_mean_this_machine(tmp_path: Path, text: str) -> None:
    registering.register(tmp_path, BENCH, None)
    assert registering.in_force(environment(tmp_path, ANUBIS_ENDPOINT=text)) is None


def test_a_token_goes_only_where_it_belongs(tmp_path: Path) -> None:
    registering.register(tmp_path, BENCH, 'anb_"odd\\')
    assert (tmp_path / "tokens.toml").stat().st_mode & 0o777 == 0o600
    mine = registering.in_force(environment(tmp_path))
    other = registering.in_force(environment(tmp_path, ANUBIS_ENDPOINT="https://other"))
    given = registering.in_force(environment(tmp_path, ANUBIS_TOKEN="anb_g"))
    assert mine is not None
    assert other is not None
    assert given is not None
    assert (mine.token, other.token, given.token) == ('anb_"odd\\', None, "anb_g")
    assert "odd" not in repr(mine)


def test_an_authority_may_be_named(tmp_path: Path) -> None:
    found = registering.in_force(
        environment(tmp_path, ANUBIS_ENDPOINT="https://other", ANUBIS_CA_FILE="/etc/ca.pem")
    )
    assert found is not None
    assert found.ca_file == Path("/etc/ca.pem")


@pytest.mark.parametrize("line", ["nonsense", "a:b:c", "host:99999"])
def test_what_cannot_be_read_is_an_error_and_never_this_machine(tmp_path: Path, line: str) -> None:
    (tmp_path / "service_endpoint").write_text(f"{line}\n")
    with pytest.raises(UserError, match="service_endpoint: endpoint: found"):
        registering.in_force(environment(tmp_path))
    with pytest.raises(UserError, match=r"^ANUBIS_ENDPOINT: endpoint: found"):
        registering.in_force(environment(tmp_path, ANUBIS_ENDPOINT=line))


def test_files_that_are_no_text_are_explained(tmp_path: Path) -> None:
    (tmp_path / "service_endpoint").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="service_endpoint cannot be read"):
        registering.in_force(environment(tmp_path))
    (tmp_path / "service_endpoint").write_text("bench:8080\n")
    (tmp_path / "tokens.toml").write_text("[[")
    with pytest.raises(UserError, match=r"tokens\.toml cannot be read"):
        registering.in_force(environment(tmp_path))


def test_a_home_that_cannot_be_written_is_explained() -> None:
    with pytest.raises(StoreUnusable, match="cannot be written"):
        registering.register(Path("/dev/null/home"), BENCH, None)


def test_the_client_id_is_the_one_that_the_original_computes(tmp_path: Path) -> None:
    # printf '%s+%s' ann laptop | sha1sum
    usual = "189b60cda73ecf673f80e156c927a2b3f4e515a0"
    assert original.client_id(tmp_path, user="ann", host="laptop") == usual
    (tmp_path / "client_id").write_text("first\nsecond\n")
    assert original.client_id(tmp_path, user="ann", host="laptop") == "second"
    original.set_client_id(tmp_path, "")
    assert original.client_id(tmp_path, user="ann", host="laptop") == usual


def test_submissions_are_added_to_the_original_s_list(tmp_path: Path) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    original.remember_action(tmp_path / "home", "id-1", "/a b/c.toml", at)
    original.remember_action(tmp_path / "home", "id-2", "/odd\nname\udcff", at)
    first, second = (tmp_path / "home" / "action_ids").read_text().splitlines()
    assert first.startswith("id-1 : /a b/c.toml : ")
    assert first.endswith("2026")
    assert second.startswith("id-2 : /odd name? : ")
    original.remember_action(Path("/dev/null/home"), "id-3", "x", at)
