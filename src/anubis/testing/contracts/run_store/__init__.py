"""What every run store must do.

Subclass ``RunStoreContract`` and give it a fixture ``store`` with a fresh, empty store::

    class TestMyStore(RunStoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[RunStore]:
            async with MyStore.open(...) as store:
                yield store
"""

from __future__ import annotations

from anubis.testing.contracts.run_store.adding import AddingContract, ListingContract
from anubis.testing.contracts.run_store.leasing import EndingContract, LeasingContract
from anubis.testing.contracts.run_store.queueing import KeyContract, QueueContract
from anubis.testing.contracts.run_store.recalling import RecallingContract
from anubis.testing.contracts.run_store.stepping import SteppingContract

__all__ = ["RunStoreContract"]


class RunStoreContract(
    AddingContract,
    ListingContract,
    LeasingContract,
    SteppingContract,
    EndingContract,
    KeyContract,
    QueueContract,
    RecallingContract,
):
    """All of it. Inherit from this one."""
