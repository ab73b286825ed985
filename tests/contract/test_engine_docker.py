"""The Docker engine keeps the promises of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests import real_parts
from tests.contract.test_engine import shell
from tests.docker_engines import ADDRESS, opened

from anubis.adapters.engine.docker.engine import DockerEngine
from anubis.adapters.engine.fake import Script
from anubis.domain import blanks
from anubis.domain.observation import EndCause
from anubis.domain.plan import Plan, Unit
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import EngineContract, ServiceContract, a_plan
from anubis.testing.contracts.engine.serving import PORT


class TestDocker(EngineContract):
    """Scripts become shell programs of a small image."""

    def plan(self, program: Script) -> Plan:
        if program.cause is EndCause.NOT_STARTED:
            return a_plan("no-program-has-this-name", image=real_parts.busybox())
        return a_plan("sh", "-c", shell(program), image=real_parts.busybox())

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        real_parts.need_docker()
        async with opened(tmp_path) as engine:
            yield engine


HTTPD = r"""
mkdir -p /www && echo hello > /www/ready
echo here
exec httpd -f -p "$0" -h /www
"""


class TestServicesOfDocker(ServiceContract):
    """A small server and its client, of a shell's programs."""

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        real_parts.need_docker()
        self.home = tmp_path
        async with opened(tmp_path) as engine:
            yield engine

    def attached(self) -> DockerEngine:
        return DockerEngine(self.home / "docker", ADDRESS, pull="never", revive=None)

    def server(self) -> Unit:
        command = ("sh", "-c", HTTPD, blanks.port("server", PORT))
        image = real_parts.busybox()
        return Unit(name="server", command=command, environment={}, image=image, ports=(PORT,))

    def client(self) -> Unit:
        url = f"http://{blanks.host('server')}:{blanks.port('server', PORT)}/ready"
        command = ("wget", "-q", "-O", "-", url)
        return Unit(name="client", command=command, environment={}, image=real_parts.busybox())
