"""Keys that OpenSSH takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests import real_parts

from anubis.adapters.ssh_keys import openssh


def test_every_run_gets_two_pairs_of_its_own() -> None:
    first, second = openssh.make(), openssh.make()
    assert set(first) == {"id", "id.pub", "host", "host.pub"}
    assert len({*first.values(), *second.values()}) == 8


@pytest.mark.parametrize("name", ["id", "host"])
def test_openssh_finds_the_public_key_in_the_private_one(tmp_path: Path, name: str) -> None:
    found = shutil.which("ssh-keygen")
    real_parts.need(found, "ssh-keygen is not installed (Debian package openssh-client)")
    keys = openssh.make()
    file = tmp_path / name
    file.write_text(keys[name])
    file.chmod(0o600)
    told = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True)
    assert told.stdout.split()[:2] == keys[f"{name}.pub"].split()[:2]
