"""The door that a pod comes in by: ``python3 -m anubis.entrypoints.pod fetch``.

For the init container of a benchmark's pod. What it shall bring is in ``ANUBIS_FETCH``, as JSON
that the engine writes (``orders``); how it went is told by the exit code, and by a last word to the
cluster that the engine reads. Lines on stdout say how far transfers have come.
"""
