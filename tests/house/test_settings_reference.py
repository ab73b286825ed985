"""The reference of settings and files says what the code says."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process.guardian import files
from anubis.domain.plan import Limits
from anubis.settings import loading
from anubis.settings.model import Settings

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference/settings.md"
FILES = ROOT / "docs/reference/files.md"


def _rows(document: Path) -> list[list[str]]:
    """The cells of every table row, without their back-ticks."""
    lines = [line for line in document.read_text("utf-8").splitlines() if line.startswith("| `")]
    return [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines
    ]


def _documented() -> dict[str, tuple[str, str, str]]:
    return {row[0]: (row[1], row[2], row[3]) for row in _rows(REFERENCE)}


def _default(field: str) -> str:
    value = getattr(Settings(home=Path("anywhere")), field)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}"
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("key", loading._KEYS, ids=lambda key: key.variable)
def test_every_setting_is_documented_with_its_default_and_its_range(key: loading._Key) -> None:
    assert _documented()[key.variable] == (key.field, _default(key.field), key.expected)


def test_the_reference_names_no_setting_that_does_not_exist() -> None:
    fields = {field.name for field in dataclasses.fields(Settings)}

    assert set(_documented()) == {key.variable for key in loading._KEYS} | {"ANUBIS_HOME"}
    assert {key.field for key in loading._KEYS} | {"home"} == fields


def test_the_documented_default_home_is_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")

    home = loading.load({}).home

    assert _documented()["ANUBIS_HOME"][1] == str(home).replace("/somewhere", "~")


def test_the_example_of_the_reference_is_accepted(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", REFERENCE.read_text("utf-8"), flags=re.DOTALL)
    (tmp_path / "config.toml").write_text(example)

    settings = loading.load({"ANUBIS_HOME": str(tmp_path)})

    assert settings == Settings(home=tmp_path, slots=4, idle_exit=timedelta(minutes=10))


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("slots = 4\n")

    assert loading.load({"ANUBIS_HOME": str(tmp_path), "ANUBIS_SLOTS": "2"}).slots == 2


def test_every_file_of_the_home_is_documented() -> None:
    settings = Settings(home=Path("home"))
    properties = [name for name, value in vars(Settings).items() if isinstance(value, property)]
    names = {Path(getattr(settings, name)).name for name in properties} | {"config.toml"}
    text = FILES.read_text("utf-8")

    assert [name for name in sorted(names) if f"`{name}" not in text] == []


def test_every_file_of_a_run_in_progress_is_documented() -> None:
    streams = {name for pair in files.STREAMS for name in pair}
    single = {files.SPEC, files.LOCK, files.JOURNAL, files.STATUS, files.DEFECT}
    control = {files.CONTROL, files.STOP, files.WORK}
    text = FILES.read_text("utf-8")

    assert [name for name in sorted(streams | single | control) if f"`{name}" not in text] == []


def test_the_limits_of_the_how_to_are_the_defaults() -> None:
    sizes = {"seconds": 1, "hour": 3600, "hours": 3600, "days": 86_400, "GiB": 1024**3}
    documented: dict[str, float | None] = {}
    for name, default, *_ in _rows(ROOT / "docs/how-to/set-limits.md"):
        number, word = default.split()
        documented[name] = None if word == "limit" else float(number) * sizes[word]
    limits = dataclasses.asdict(Limits())
    limits["output_size"] = limits.pop("output_bytes")

    assert documented == {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in limits.items()
    }
