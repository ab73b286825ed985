"""What the mark ``cluster`` of a test means: a real Kubernetes, shared or alone.

``@pytest.mark.cluster``: the test needs a cluster, and nobody kills parts of it meanwhile.
``@pytest.mark.cluster(alone=True)``: no other test uses it meanwhile; this one may kill, and turn
things on that others do not want. ``tests/conftest.py`` puts these hooks to work.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from tests import real_parts
from tests.cluster import control, layout, locking


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the cluster from before the first fixture until after the last; waiting costs no time.

    Around the time limit of the test, too: the wait for others does not count.
    """
    mark = item.get_closest_marker("cluster")
    if mark is None or not control.is_here():
        return (yield)
    hold = locking.alone if mark.kwargs.get("alone") else locking.sharing
    with hold(layout.layout()):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail where there is no cluster; start again what a killed test left dead."""
    mark = item.get_closest_marker("cluster")
    if mark is None:
        return
    if control.is_here():
        control.heal()
    real_parts.need_cluster()
    if mark.kwargs.get("alone"):
        real_parts.need(control.can_kill(), "this cluster's parts are no processes of this machine")
