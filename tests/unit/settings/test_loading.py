from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from anubis.domain.errors import UserError
from anubis.settings import loading


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("slots = 2\nidle_exit = 5\n")
    settings = loading.load({"ANUBIS_HOME": str(tmp_path), "ANUBIS_SLOTS": "3"})
    assert settings.slots == 3
    assert settings.idle_exit == timedelta(seconds=5)


def test_without_anything_the_home_is_in_the_users_home() -> None:
    assert loading.load({}).home == Path.home() / ".anubis"
    assert loading.load({}).slots == 1


def test_a_relative_home_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert loading.load({"ANUBIS_HOME": "here"}).home == tmp_path / "here"


@pytest.mark.parametrize("value", ["0", "many", "", "1025", "1.5"])
def test_a_wrong_number_of_slots_names_the_variable_and_what_is_expected(value: str) -> None:
    with pytest.raises(UserError, match=r"ANUBIS_SLOTS: found .* expected a whole number"):
        loading.load({"ANUBIS_SLOTS": value, "ANUBIS_HOME": "/nowhere"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slot = 1", "unknown key 'slot'"),
        ("slots = true", "slots: found True"),
        ("slots = ", "cannot be read"),
        ("idle_exit = 'nan'", "idle_exit: found 'nan'"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        loading.load({"ANUBIS_HOME": str(tmp_path)})
    assert "config.toml" in str(caught.value)


def test_what_a_machine_has_can_be_declared(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('cpus = 3.5\nmemory = "16GiB"\ngpus = 0\n')
    settings = loading.load({"ANUBIS_HOME": str(tmp_path), "ANUBIS_GPUS": "2"})
    assert (settings.cpus, settings.memory, settings.gpus) == (3.5, 16 * 2**30, 2)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ANUBIS_CPUS", "0"),
        ("ANUBIS_CPUS", "nan"),
        ("ANUBIS_MEMORY", "much"),
        ("ANUBIS_MEMORY", "0"),
        ("ANUBIS_GPUS", "-1"),
        ("ANUBIS_GPUS", "0.5"),
        ("ANUBIS_MAX_ACTIVE", "0"),
    ],
)
def test_a_wrong_amount_names_the_variable(variable: str, value: str) -> None:
    with pytest.raises(UserError, match=rf"{variable}: found '{value}', expected "):
        loading.load({variable: value, "ANUBIS_HOME": "/nowhere"})


def test_docker_is_where_its_own_variable_says_unless_ours_says_otherwise() -> None:
    elsewhere = {"ANUBIS_HOME": "/nowhere", "DOCKER_HOST": "unix:///run/other.sock"}
    assert loading.load(elsewhere).docker_host == "unix:///run/other.sock"
    assert loading.load({**elsewhere, "ANUBIS_DOCKER_HOST": "none"}).docker_host == "none"
    assert loading.load({"ANUBIS_HOME": "/nowhere"}).docker_host == "unix:///var/run/docker.sock"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ANUBIS_DOCKER_HOST", "ssh://machine"),
        ("ANUBIS_DOCKER_HOST", "tcp://machine"),
        ("ANUBIS_DOCKER_HOST", "unix:///"),
        ("ANUBIS_PULL", "sometimes"),
    ],
)
def test_a_wrong_word_about_docker_names_the_variable(variable: str, value: str) -> None:
    with pytest.raises(UserError, match=rf"{variable}: found '{value}', expected "):
        loading.load({variable: value, "ANUBIS_HOME": "/nowhere"})


@pytest.mark.parametrize("value", ["", "process,podman", "docker,docker", "process;docker"])
def test_a_wrong_list_of_engines_names_the_variable(value: str) -> None:
    with pytest.raises(UserError, match=r"ANUBIS_ENGINES: found .* expected some of process"):
        loading.load({"ANUBIS_ENGINES": value, "ANUBIS_HOME": "/nowhere"})


def test_engines_may_have_spaces_between_them() -> None:
    settings = loading.load({"ANUBIS_ENGINES": "kubernetes, process", "ANUBIS_HOME": "/nowhere"})

    assert settings.engines == "kubernetes,process"


def test_the_name_of_a_lease_is_one_that_kubernetes_takes() -> None:
    with pytest.raises(UserError, match="ANUBIS_LEADER_LEASE: found 'My Lease'"):
        loading.load({"ANUBIS_LEADER_LEASE": "My Lease", "ANUBIS_HOME": "/nowhere"})
