"""``anubis doctor`` finds what a crash left at the daemon, and removes it on request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests import docker_images, real_parts
from tests.docker_engines import ADDRESS, left

from anubis.adapters.engine.docker import composing
from anubis.domain.run import RunId
from anubis.entrypoints.cli.commands.doctor import doctor_command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANUBIS_HOME", str(tmp_path))
    monkeypatch.setenv("ANUBIS_DOCKER_HOST", ADDRESS)
    return tmp_path


def doctor(*words: str) -> str:
    return CliRunner().invoke(doctor_command, words).output


async def test_things_of_unknown_runs_are_found_and_removed(home: Path) -> None:
    """A container that runs, and a network; whose run nobody knows any more."""
    image = real_parts.busybox()
    names = composing.Names(home=composing.home_id(home), run_id=RunId("lost"))
    labels = [f"--label={name}={value}" for name, value in names.labels().items()]
    docker_images.docker("network", "create", *labels, names.network)
    docker_images.docker("run", "--detach", *labels, image, "sleep", "600")
    told = await asyncio.to_thread(doctor)
    assert "of 1 run that has ended" in told
    assert left(home)
    assert "removed those of 1 run\n" in await asyncio.to_thread(doctor, "--clean")
    assert left(home) == ""


def test_who_has_no_docker_is_not_bothered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANUBIS_DOCKER_HOST", "none")
    assert "turned off" in doctor()


def test_a_daemon_that_answers_is_described(home: Path) -> None:
    real_parts.need_docker()
    assert "cgroup v" in doctor()
