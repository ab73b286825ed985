"""Logs as compressed, seekable files on this machine, with a full-text index beside large ones.

``frame`` is the format, ``writing`` makes the files, ``reading`` follows and searches them,
``indexing`` builds and asks the full-text index, ``store`` ties them together.
"""

from anubis.adapters.log_store.local.store import LocalLogStore

__all__ = ["LocalLogStore"]
