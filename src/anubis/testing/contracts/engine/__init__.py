"""What every engine must do.

Subclass ``EngineContract``, give it a fixture ``engine``, and say how your engine spells each
program of the suite by implementing ``plan``::

    class TestMyEngine(EngineContract):
        @pytest.fixture
        async def engine(self) -> AsyncIterator[Engine]:
            async with MyEngine(...) as engine:
                yield engine
                await clear(engine)

        def plan(self, program: Script) -> Plan:
            return a_plan("my-shell", to_my_language(program))

Engines that really run something also keep the ``ServiceContract``, whose units talk to each other.
"""

from __future__ import annotations

from anubis.testing.contracts.engine.ensembles import EnsembleContract
from anubis.testing.contracts.engine.given import (
    a_new_run,
    a_plan,
    clear,
    end,
    output,
    run,
    until_it_speaks,
    watch,
)
from anubis.testing.contracts.engine.running import (
    RepeatingContract,
    RunningContract,
    StoppingContract,
)
from anubis.testing.contracts.engine.serving import ServiceContract

__all__ = [
    "EngineContract",
    "ServiceContract",
    "a_new_run",
    "a_plan",
    "clear",
    "end",
    "output",
    "run",
    "until_it_speaks",
    "watch",
]


class EngineContract(RunningContract, RepeatingContract, StoppingContract, EnsembleContract):
    """All that does not need a network."""
