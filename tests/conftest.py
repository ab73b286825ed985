"""For all tests."""

from __future__ import annotations

import os

import hypothesis
import pytest
from tests import real_parts
from tests.cluster.marking import pytest_runtest_protocol, pytest_runtest_setup
from tests.data_fixtures import certificate, ftp, ftps, old_ftp, s3

__all__ = [
    "certificate",
    "ftp",
    "ftps",
    "old_ftp",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "s3",
]

# The contract suites are a public kit outside tests/: show what their assertions compared.
pytest.register_assert_rewrite("anubis.testing.contracts")

# The same examples every time, so that a change that passes here passes everywhere. Look for new
# ones with HYPOTHESIS_PROFILE=explore.
hypothesis.settings.register_profile("repeat", derandomize=True)
hypothesis.settings.register_profile("explore", max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """No test leaves a container, network, volume or namespace of ours behind.

    Only in a pipeline: elsewhere somebody may have runs of their own. With several processes, in
    the one that waits for all others.
    """
    if not real_parts.is_pipeline() or hasattr(session.config, "workerinput"):
        return
    if left := real_parts.left_in_docker() + real_parts.left_in_cluster():
        print(f"\ntests left behind: {', '.join(left)}")  # noqa: T201 - the end of a report
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
