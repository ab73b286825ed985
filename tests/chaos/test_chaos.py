"""Nothing is lost, doubled or untrue when our processes are killed at random moments.

The same campaign with a thousand kills is ``python -m bench.chaos --kills 1000``.
"""

from __future__ import annotations

import pytest

from bench import chaos


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [1, 2])
async def test_killing_anything_at_any_moment_loses_nothing(seed: int) -> None:
    report = await chaos.campaign(kills=25, seed=seed)
    assert report.faults == []
    assert report.kill_count >= 25
    assert report.lines > 0
    assert {"runtime", "shim"} <= set(report.kills)  # whoever cannot be found cannot be killed
