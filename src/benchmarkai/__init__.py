"""The original client library's name, for old benchmark code: ``from benchmarkai import emit``."""
