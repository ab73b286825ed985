from __future__ import annotations

import json

from anubis.domain.document import Fingerprint
from anubis.entrypoints.cli.rendering import environments


def test_the_environment_is_told_in_three_lines() -> None:
    machine = {
        "cpu": "Fast 9000",
        "logical_cores": 8,
        "memory_bytes": 16 * 1024**3,
        "gpus": [{"name": "NVIDIA H200"}],
        "governor": "performance",
        "python": {"version": "3.12.1", "packages": {"numpy": "2.0"}},
    }
    moment = {
        "load": [0.25, 0.5, 1.0],
        "git": {"commit": "a" * 40, "branch": "main", "dirty": True, "changed_files": 3},
    }
    found = dict(
        environments.facts(Fingerprint(machine=json.dumps(machine), moment=json.dumps(moment)))
    )
    assert found["machine"] == (
        "Fast 9000, 8 cores, 16 GiB, NVIDIA H200, governor performance, load 0.25 before the start"
    )
    assert found["python"] == "3.12.1 with 1 packages"
    assert found["code"] == f"commit {'a' * 12} on main, 3 files changed"


def test_what_an_engine_does_not_know_is_left_out() -> None:
    assert environments.facts(None) == []
    found = environments.facts(Fingerprint(machine="{}", moment='{"git": null}'))
    assert found == [("machine", ""), ("python", ""), ("code", "")]
