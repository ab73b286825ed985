"""The original client library's name, for old benchmark code: ``from benchmarkai import emit``."""

from anubis.emit import FifoNotCreatedInTimeError, emit

__all__ = ["FifoNotCreatedInTimeError", "emit"]
