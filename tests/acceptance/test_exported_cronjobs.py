"""A CronJob from ``anubis export`` on a real cluster has a real service run its descriptor."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import kubectl, own_image, real_parts
from tests.cluster import control, layout
from tests.docker_images import Unavailable
from tests.kubectl import Space

from .serving import ANUBIS, Service, serving

pytestmark = [pytest.mark.acceptance, pytest.mark.cluster]

DESCRIPTOR = """\
spec_version = "0.1.0"
info = {{description = "d", scheduling = "0 3 * * *", execution_engine = "process"}}
schedule = {{overlap = "cancel_previous"}}
ml.benchmark_code = "sh -c '{command}'"
limits.grace = "1s"
"""


@pytest.fixture(scope="module")
def image() -> str:
    try:
        return own_image.loaded()
    except Unavailable as error:
        real_parts.need(False, f"our own image cannot be made: {error}")
        raise


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that pods reach."""
    real_parts.need(control.is_here(), "pods of this cluster do not reach this machine")
    options = ("--host", layout.NODE_ADDRESS, "--require-tokens")
    with serving(tmp_path_factory.mktemp("service"), *options) as made:
        yield made


@pytest.fixture
def space(service: Service) -> Iterator[Space]:
    """A namespace that has a token for the service."""
    with kubectl.space("cronjob") as made:
        token = service.token("night", "submitter")
        made.ask("create", "secret", "generic", "night", f"--from-literal=token={token}")
        yield made


def fire(space: Space, service: Service, image: str, command: str, *more: str) -> None:
    """Export a descriptor, apply it, and let the CronJob fire now: as the Job ``fired``."""
    file = service.folder / "descriptor.toml"
    file.write_text(DESCRIPTOR.format(command=command), "utf-8")
    address = f"http://{layout.NODE_ADDRESS}:{service.port}"
    words = [ANUBIS, "export", "--cronjob", str(file), "--service", address, "--image", image]
    made = subprocess.run(
        [*words, "--token-secret", "night", *more],
        env=service.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    apply = ("apply", "--server-side", "--filename", "-")
    space.ask(*apply, "--dry-run=server", stdin=made.stdout)
    space.ask(*apply, stdin=made.stdout)
    fire_again(space, service, "fired")


def fire_again(space: Space, service: Service, name: str) -> None:
    """Let the CronJob fire now, under a name."""
    space.ask("create", "job", name, f"--from=cronjob/anubis-{service.folder.name}")


def runs(service: Service) -> list[dict[str, Any]]:
    told = subprocess.run(
        [ANUBIS, "list", "--json"], env=service.environment, capture_output=True, check=True
    )
    return list(json.loads(told.stdout)["runs"])


def condition(space: Space, name: str = "fired") -> str:
    """How the Job ended; empty while it goes on."""
    found = space.get("job", name)["status"].get("conditions", [])
    return "".join(one["type"] for one in found if one["type"] in {"Complete", "Failed"})


@pytest.mark.parametrize(
    ("command", "ended", "state"),
    [("echo done", "Complete", "SUCCEEDED"), ("exit 7", "Failed", "FAILED")],
)
def test_the_service_runs_what_fires_and_the_pod_ends_as_the_run_does(
    space: Space, service: Service, image: str, command: str, ended: str, state: str
) -> None:
    fire(space, service, image, command)
    assert kubectl.until(lambda: condition(space), "the pod did not end") == ended
    run = runs(service)[0]
    assert (run["state"], run["submitter"]) == (state, "night")


def said_at_the_end(space: Space, name: str) -> str:
    """What the pod of a Job told when it had ended well."""
    ended = kubectl.until(lambda: condition(space, name), "the pod did not end")
    told = space.ask("logs", f"job/{name}")
    assert ended == "Complete", told
    return told


def answer(service: Service, *words: str) -> str:
    told = subprocess.run(
        [ANUBIS, *words], env=service.environment, capture_output=True, text=True, check=True
    )
    return told.stdout


def test_code_goes_along_and_is_sent_once(
    space: Space, service: Service, image: str, tmp_path: Path
) -> None:
    """As much of it as a ConfigMap holds, or nearly so."""
    code = tmp_path / "src"
    code.mkdir()
    (code / "main.sh").write_text('exec "$(dirname "$0")/tool" "$(wc -c < "$(dirname "$0")/x")"\n')
    (code / "tool").write_text('#!/bin/sh\necho "the tool saw $1"\n')
    (code / "tool").chmod(0o755)
    (code / "x").write_bytes(os.urandom(1_000_000))
    command = "sh $(BAI_SCRIPTS_PATH)/src/main.sh"
    fire(space, service, image, command, "--script", str(code))
    assert "bytes sent" in said_at_the_end(space, "fired")
    fire_again(space, service, "again")
    assert "known already" in said_at_the_end(space, "again")
    assert "the tool saw 1000000" in answer(service, "logs", "last")
    document = json.loads(answer(service, "show-descriptor", "last", "--json"))
    kept = space.get("configmap", f"anubis-{service.folder.name}")
    assert [document["script"]] == list(kept["binaryData"])


def test_a_pod_that_is_replaced_cancels_its_run(
    space: Space, service: Service, image: str, tmp_path: Path
) -> None:
    sign = tmp_path / "began"
    fire(space, service, image, f"touch {sign}; sleep 600")
    kubectl.until(sign.exists, "the run did not begin")
    space.ask("delete", "job", "fired", "--wait=false")
    kubectl.until(lambda: runs(service)[0]["state"] == "CANCELED", "the run was not canceled")
