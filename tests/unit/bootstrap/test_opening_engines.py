"""Which engines a runtime opens, and how it is said that one is not there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.bootstrap import engines
from anubis.entrypoints.cli.checks import kubernetes
from anubis.settings.model import Settings
from anubis.testing.clock import ManualClock


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)


@pytest.mark.usefixtures("without_library")
async def test_a_runtime_has_docker_for_when_its_library_is_installed_later(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    async with engines.opened(settings, None, MemoryScriptStore(ManualClock())) as found:
        assert set(found.by_name) == {"process", "docker", "kubernetes"}
        assert await found.by_name["docker"].leftovers() == []


async def test_a_runtime_has_no_docker_where_it_is_turned_off(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, docker_host="none", kubernetes="none")
    async with engines.opened(settings, None, MemoryScriptStore(ManualClock())) as found:
        assert set(found.by_name) == {"process"}


@pytest.mark.usefixtures("without_library")
def test_without_its_library_docker_cannot_be_chosen_and_both_ways_to_have_it_are_named(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path)
    assert set(engines.capabilities(settings)) == {"process"}
    reason = engines.absence(settings, "docker")
    assert "pip install 'anubis[docker]'" in reason
    assert "make extras" in reason


def test_only_the_engines_that_are_offered_can_be_chosen(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, engines="docker,process", docker_host="unix:///nowhere")

    assert set(engines.capabilities(settings)) == {"process", "docker"}
    assert "ANUBIS_ENGINES" in engines.absence(settings, "kubernetes")
    assert engines.absence(settings, "process") == ""


async def test_a_kubeconfig_that_is_not_there_is_named_before_a_run_is_stored(
    tmp_path: Path,
) -> None:
    named = f"{tmp_path / 'one'}:{tmp_path / 'two'}"
    settings = Settings(home=tmp_path, kubeconfig=named)
    reason = engines.absence(settings, "kubernetes")
    assert reason.endswith(f"KUBECONFIG is {named}, and there is no such file.")
    assert "kubernetes" not in engines.capabilities(settings)
    finding = await kubernetes.answers(settings)
    assert (finding.found, finding.advice) == (reason, "name another, or unset KUBECONFIG")
    (tmp_path / "two").write_text("")
    assert "kubernetes" in engines.capabilities(settings)
