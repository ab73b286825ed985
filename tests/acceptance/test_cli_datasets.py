"""The cache, looked after with the installed command: on this machine, and over a service."""

from __future__ import annotations

import hashlib
import json
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .serving import PATIENCE
from .slow_server import PIECE, slowly

pytestmark = pytest.mark.acceptance

COLUMNS = ("embedded", "remote")


@pytest.fixture(autouse=True)
def empty_again(home: Any) -> Iterator[None]:
    """Services are shared by the tests of this module."""
    yield
    home.ask("dataset", "evict", "--all")
    assert home.ask("dataset", "list") == "no datasets\n"


def a_file(folder: Path, name: str, content: bytes = b"1, 2, 3\n") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def listed(home: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(home.ask("dataset", "list", "--json"))["datasets"]
    return found


def test_a_dataset_is_added_found_again_verified_and_evicted(home: Any, tmp_path: Path) -> None:
    file = a_file(tmp_path, "set.csv")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    wish = ("dataset", "add", str(file), "--checksum", f"sha256:{digest}")
    key = home.ask(*wish).strip()
    assert len(key) == 64

    assert home.ask(*wish).strip() == key
    [found] = listed(home)
    assert (found["key"], found["size_bytes"], found["files"]) == (key, 8, 1)
    assert found["digest"] == f"sha256:{digest}"
    assert key in home.ask("dataset", "list")
    assert home.ask("dataset", "verify", key[:12]) == f"{key} ok\n"
    assert home.ask("dataset", "evict", key[:12]) == f"{key} evicted, 8 B freed\n"
    assert listed(home) == []
    assert home.call("dataset", "verify", key).returncode == 2


def test_an_archive_is_unpacked_and_a_path_completed_here(home: Any, tmp_path: Path) -> None:
    with tarfile.open(home.folder / "set.tar.gz", "w:gz") as archive:
        for name in ("a.csv", "b.csv"):
            archive.add(a_file(tmp_path, name), arcname=f"set/{name}")

    home.ask("dataset", "add", "set.tar.gz", "--unpack")

    [found] = listed(home)
    assert (found["kind"], found["files"], found["unpacked"]) == ("directory", 2, True)


def test_a_run_finds_what_was_added_and_lets_go_of_it(home: Any) -> None:
    a_file(home.folder, "set.csv")
    file = home.descriptor('cat "$ANUBIS_DATA_0"; echo loss=1')
    with (home.folder / file).open("a") as descriptor:
        descriptor.write('\n[[data.sources]]\nsrc = "set.csv"\npath = "/data/set.csv"\n')
    key = home.ask("dataset", "add", "set.csv").strip()

    result = home.call("run", file)

    assert result.returncode == 0, result.stdout.decode() + result.stderr.decode()
    assert "1, 2, 3" in home.ask("logs")
    [found] = listed(home)
    assert (found["key"], found["pinned_by"]) == (key, [])


def test_what_is_not_what_it_should_be_is_an_error_and_nothing_is_kept(
    home: Any, tmp_path: Path
) -> None:
    file = a_file(tmp_path, "set.csv")
    wrong = home.call("dataset", "add", str(file), "--checksum", "0" * 32)
    missing = home.call("dataset", "add", str(tmp_path / "none.csv"))
    unknown = home.call("dataset", "add", "gopher://host/x")

    found = hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
    assert wrong.returncode == 2
    assert found in wrong.stderr.decode()
    assert "0" * 32 in wrong.stderr.decode()
    assert missing.returncode == 2
    assert unknown.returncode == 2
    assert b"Traceback" not in wrong.stderr + missing.stderr + unknown.stderr
    assert listed(home) == []


def test_a_damaged_dataset_is_found_and_removed(home: Any, tmp_path: Path) -> None:
    key = home.ask("dataset", "add", str(a_file(tmp_path, "set.csv"))).strip()
    for path in home.path.rglob("set.csv"):
        path.chmod(0o644)
        path.write_bytes(b"3, 2, 1\n")

    result = home.call("dataset", "verify", "--all")

    assert result.returncode == 1
    assert result.stdout.decode() == f"{key} damaged: removed\n"
    assert listed(home) == []


def test_the_cache_is_made_smaller_by_size_and_equal_content_counts_once(
    home: Any, tmp_path: Path
) -> None:
    keys = [
        home.ask("dataset", "add", str(a_file(tmp_path, f"{number}.bin", content))).strip()
        for number, content in enumerate((b"a" * 65536, b"b" * 65536, PIECE, PIECE))
    ]

    said = home.ask("dataset", "evict", "--to", "128KiB")

    assert said == f"{keys[0]} evicted, 64 KiB freed\n"
    assert home.ask("dataset", "list", "--keys").split() == keys[:0:-1], "equal content counts once"
    assert home.ask("dataset", "evict", "--unused-for", "1") == ""


def test_ctrl_c_stops_the_transfer(home: Any) -> None:
    with slowly() as server:
        adding = home.start("dataset", "add", server.address)
        assert server.asked.wait(PATIENCE)
        adding.send_signal(signal.SIGINT)
        _, said = adding.communicate(timeout=PATIENCE)

        assert adding.returncode == 130, said
        assert server.left.wait(PATIENCE), "nobody reads any more"
    assert listed(home) == []
