"""A real Kubernetes on one machine, for tests and for developers: ``python3 -m tests.cluster``.

What belongs here: building the parts of Kubernetes from Go modules whose versions and hashes are
kept in ``components/``, starting and ending them on this machine, loading images, and killing a
part in the middle of a test (``control``). What does not: tests, and anything of the product.

Only the standard library: it runs before anything is installed.
"""
