"""The doctor's questions, asked about machines made of files."""

from __future__ import annotations

import builtins
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from anubis.entrypoints.cli.checks import home, libraries, machine
from anubis.entrypoints.cli.checks.finding import Level
from anubis.testing import builders

from .conftest import World


def governors(kernel: Path, *names: str) -> Path:
    for index, name in enumerate(names):
        folder = kernel / f"cpu/cpu{index}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{name}\n")
    return kernel


@pytest.mark.parametrize(
    ("names", "level"),
    [
        ((), Level.OK),
        (("performance", "performance"), Level.OK),
        (("powersave", "performance"), Level.WARN),
    ],
)
def test_a_governor_that_changes_frequencies_is_a_warning(
    tmp_path: Path, names: tuple[str, ...], level: Level
) -> None:
    assert machine.governor(governors(tmp_path, *names)).level is level


@pytest.mark.parametrize(("average", "level"), [(0.3, Level.OK), (3.0, Level.WARN)])
def test_a_busy_machine_is_a_warning(average: float, level: Level) -> None:
    assert machine.load(average, 4).level is level


@pytest.mark.parametrize(
    ("version", "level"), [((3, 11, 0), Level.OK), ((3, 12, 1), Level.OK), ((3, 10, 9), Level.FAIL)]
)
def test_an_old_python_fails(version: tuple[int, int, int], level: Level) -> None:
    assert machine.python(version).level is level


@pytest.mark.parametrize(
    ("source", "now", "level"),
    [
        ("tsc", 1.8e9, Level.OK),
        ("kvm-clock", 1.8e9, Level.OK),
        ("hpet", 1.8e9, Level.WARN),
        ("tsc", 1e9, Level.FAIL),
    ],
)
def test_a_slow_or_wrong_clock_is_found(
    tmp_path: Path, source: str, now: float, level: Level
) -> None:
    folder = tmp_path / "clocksource/clocksource0"
    folder.mkdir(parents=True)
    (folder / "current_clocksource").write_text(f"{source}\n")
    assert machine.clock(now, tmp_path).level is level


def test_gpus_without_a_library_to_ask_them_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_nvml(name: str, *rest: Any) -> Any:
        if name == "pynvml":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_nvml)
    driver = tmp_path / "version"
    assert machine.gpus(driver).found == "none"
    driver.write_text("NVRM version: 535\n")
    finding = machine.gpus(driver)
    assert finding.level is Level.WARN
    assert "anubis[nvidia]" in finding.advice


def test_all_libraries_of_the_lock_are_found() -> None:
    assert {one.level for one in libraries.importable()} == {Level.OK}
    assert libraries.sqlite().level is Level.OK


def test_a_home_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    assert home.writable(tmp_path / "new").level is Level.OK
    (tmp_path / "file").write_text("")
    assert home.writable(tmp_path / "file" / "home").level is Level.FAIL


@pytest.mark.parametrize(
    ("free", "level"), [(1 << 40, Level.OK), (1 << 30, Level.WARN), (1 << 20, Level.FAIL)]
)
def test_little_space_is_found_before_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: Level
) -> None:
    usage = dataclasses.make_dataclass("Usage", ["free"])(free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert home.space(tmp_path).level is level


def test_leftovers_are_those_of_ended_and_unknown_runs(world: World) -> None:
    active, ended = world.add(builders.a_run(1)), world.add(builders.a_run(2))
    world.finish(ended)
    runs = world.application.settings.runs
    for run_id in (active, ended, builders.a_run_id(3)):
        (runs / run_id).mkdir(parents=True)

    async def both() -> tuple[str, str, str]:
        first = await home.leftovers(world.application, clean=False)
        cleaned = await home.leftovers(world.application, clean=True)
        last = await home.leftovers(world.application, clean=False)
        return first.found, cleaned.found, last.found

    assert world.do(both) == (
        "of 2 runs that have ended",
        "removed those of 2 runs",
        "none",
    )
    assert [path.name for path in runs.iterdir()] == [active]


def test_runs_that_wait_without_a_runtime_are_a_warning(world: World) -> None:
    assert world.do(lambda: home.runtime(world.application)).level is Level.OK
    world.add(builders.a_run(1))
    assert world.do(lambda: home.runtime(world.application)).level is Level.WARN
