"""For all tests."""

from __future__ import annotations

import pytest

# The contract suites are a public kit outside tests/: show what their assertions compared.
pytest.register_assert_rewrite("anubis.testing.contracts")
