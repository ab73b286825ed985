"""Where runs run."""

from __future__ import annotations

from anubis.entrypoints.api.resources.models.kinds import Answer, Count


class Capacity(Answer):
    """What an engine has, or what is in use of it."""

    slots: Count
    """Most runs at once."""
    cpus: float
    memory_bytes: Count
    gpus: Count


class Engine(Answer):
    """What an engine can do, and how busy it is."""

    name: str
    strategies: list[str]
    """Spellings of ``hardware.strategy`` that it can run."""
    needs_image: bool
    healthy: bool
    detail: str
    """A sentence about its health."""
    capacity: Capacity
    in_use: Capacity
    waiting: Count
    """How many runs wait for it, counted up to 1,000."""


class Engines(Answer):
    """All engines of this installation."""

    engines: list[Engine]
