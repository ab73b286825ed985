"""The environment of a run is described truly, quickly, and without ever failing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from anubis.adapters.engine.process import interpreters, machine, repositories
from anubis.adapters.engine.process.fingerprinting import Fingerprinter
from anubis.adapters.engine.process.gpus import Gpus
from anubis.testing.contracts.engine import a_plan


@pytest.fixture
def fingerprinter(tmp_path: Path) -> Fingerprinter:
    return Fingerprinter(tmp_path / "cache", Gpus(lambda: None))


async def test_the_machine_is_described(fingerprinter: Fingerprinter) -> None:
    print_ = await fingerprinter.take(a_plan("true"))
    facts = json.loads(print_.machine)
    assert facts["cpu"]
    assert facts["logical_cores"] == os.cpu_count()
    assert facts["memory_bytes"] > 0
    assert facts["kernel"].endswith(os.uname().release)
    assert facts["hostname"] == os.uname().nodename
    assert facts["gpus"] == []
    assert facts["python"] is None
    moment = json.loads(print_.moment)
    assert len(moment["load"]) == 3
    assert moment["free_memory_bytes"] > 0
    assert moment["git"] is None


async def test_packages_of_the_interpreter_are_listed(fingerprinter: Fingerprinter) -> None:
    facts = json.loads((await fingerprinter.take(a_plan(sys.executable, "x.py"))).machine)
    assert facts["python"]["path"] == sys.executable
    assert facts["python"]["version"] == sys.version.split()[0]
    assert facts["python"]["packages"]["pytest"] == pytest.__version__


@pytest.mark.parametrize("first_line", [f"#!{sys.executable}", "#!/usr/bin/env -S python3 -u"])
def test_a_script_is_known_by_its_first_line(tmp_path: Path, first_line: str) -> None:
    folder = str(Path(sys.executable).parent)
    script = tmp_path / "train"
    script.write_text(f"{first_line}\nprint()\n")
    script.chmod(0o755)
    unit = a_plan("./train", directory=str(tmp_path)).units[0]
    found = interpreters.interpreter_of(unit, {"PATH": folder})
    assert found is not None
    assert Path(found).parent == Path(folder)


@pytest.mark.parametrize("command", ["sh", "no-such-program", "/etc/passwd"])
def test_other_programs_have_no_interpreter_we_know(command: str) -> None:
    assert interpreters.interpreter_of(a_plan(command).units[0], os.environ) is None


def test_an_interpreter_is_asked_again_only_when_packages_change(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    asked = tmp_path / "asked"
    python = tmp_path / "python3"
    answer = json.dumps({"version": "3", "folders": [str(folder)], "packages": {}})
    python.write_text(f"#!/bin/sh\necho x >>{asked}\necho '{answer}'\n")
    python.chmod(0o755)
    for _ in range(2):  # the second one finds it on the disk
        known = interpreters.Interpreters(tmp_path / "cache")
        known.describe(str(python))
        assert known.recall(str(python)) is not None
    assert asked.read_text() == "x\n"
    (folder / "new.dist-info").mkdir()
    os.utime(folder, ns=(1, 1))
    assert known.recall(str(python)) is None
    known.describe(str(python))
    assert asked.read_text() == "x\nx\n"


def test_an_interpreter_that_does_not_answer_is_said_to(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    described = interpreters.Interpreters(tmp_path / "cache").describe(str(python))
    assert "did not tell its packages" in str(described["error"])
    assert not (tmp_path / "cache").exists()


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


async def test_commit_branch_and_changes_are_told(
    fingerprinter: Fingerprinter, tmp_path: Path
) -> None:
    inner = tmp_path / "repository" / "inner"
    inner.mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "trunk", "repository")
    (inner / "train.py").write_text("1\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "first")
    plan = a_plan("true", directory=str(inner))
    clean = json.loads((await fingerprinter.take(plan)).moment)["git"]
    assert clean["commit"] == git(inner, "rev-parse", "HEAD")
    assert (clean["branch"], clean["dirty"]) == ("trunk", False)
    (inner / "train.py").write_text("2\n")
    dirty = json.loads((await fingerprinter.take(plan)).moment)["git"]
    assert (dirty["dirty"], dirty["changed_files"]) == (True, 1)


def test_a_repository_git_cannot_read_says_why(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert repositories.find_repository(str(tmp_path / "deeper")) == tmp_path
    assert "not a git repository" in str(repositories.describe_repository(tmp_path)["error"])


def test_without_git_the_fingerprint_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repositories.describe_repository(tmp_path) == {"error": "git is not installed"}


def test_hardware_threads_are_not_counted_as_cores() -> None:
    cpus = "".join(
        f"processor\t: {n}\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t\t: {n // 2}\n\n"
        for n in range(4)
    )
    assert machine.physical_cores(cpus) == 2
    assert machine.cpu_model(cpus) == "Fast CPU"
    assert machine.physical_cores("") is None
