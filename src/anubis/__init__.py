"""Anubis measures machine-learning systems.

The rooms of this package, from the top down: ``entrypoints``, ``bootstrap``, ``settings`` |
``runtime``, ``stages`` | ``adapters``, ``ports``, ``domain``. Imports only point down; see
``docs/explanation/architecture.md``. Importing this package does nothing else.
"""

__version__ = "0.1.0"
