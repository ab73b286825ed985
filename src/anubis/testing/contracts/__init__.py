"""Contract suites: what every adapter of a port must do, as tests to inherit.

Subclass a suite in a test module and give it the fixtures it asks for; pytest collects the
inherited tests. To get readable assertion failures, put
``pytest.register_assert_rewrite("anubis.testing.contracts")`` into your ``conftest.py``.
"""
