"""The Docker engine keeps the promises of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests import real_parts
from tests.contract.test_engine import shell
from tests.docker_engines import opened

from anubis.adapters.engine.fake import Script
from anubis.domain.observation import EndCause
from anubis.domain.plan import Plan
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import EngineContract, a_plan


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
