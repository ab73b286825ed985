"""Which commit the code of a run is at, and whether it was changed since."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

ANSWER_SECONDS = 10.0
"""Looking at every tracked file of a large tree on a cold disk takes seconds."""

State = dict[str, object]


def find_repository(directory: str | None) -> Path | None:
    """The nearest folder upwards that git keeps, if there is one."""
    if not directory:
        return None
    place = Path(directory)
    with contextlib.suppress(OSError):  # a file system that does not answer
        for folder in (place, *place.parents):
            if (folder / ".git").exists():
                return folder
    return None


def describe_repository(folder: Path) -> State:
    """Commit, branch and the number of changed tracked files; or why we cannot tell. Blocks."""
    command = ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch"]
    command.append("--untracked-files=no")
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        return {"error": "git is not installed"}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": f"git did not answer: {error}"}
    if answer.returncode != 0:
        return {"error": answer.stderr.decode(errors="replace").strip().split("\n")[0]}
    return _parse(answer.stdout.decode(errors="replace").splitlines())


def _parse(lines: list[str]) -> State:
    heads = {line.split(" ", 2)[1]: line.split(" ", 2)[2] for line in lines if line[:1] == "#"}
    changed = sum(1 for line in lines if line[:1] in {"1", "2", "u"})
    commit, branch = heads.get("branch.oid"), heads.get("branch.head")
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": None if branch == "(detached)" else branch,
        "dirty": changed > 0,
        "changed_files": changed,
    }
