"""The exact bytes a user gave us, and the fingerprint of the environment a run had."""

from __future__ import annotations

import dataclasses
import hashlib


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A descriptor as it was submitted. ``sha`` is computed, never claimed."""

    name: str  #: file name for messages
    directory: str  #: where relative paths start; empty when unknown
    content: bytes
    script: str = ""  #: the archive of code that was submitted beside it; empty: none

    @property
    def sha(self) -> str:
        """SHA-256 of the content, in hex."""
        return hashlib.sha256(self.content).hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """The environment of a run, as JSON text: ``machine`` rarely changes, ``moment`` always does.

    Kept apart so that a store can hold the large, repeated part once.
    """

    machine: str  #: CPU, cores, governor, memory, kernel, GPUs, interpreter, packages
    moment: str  #: load before start, free memory, git commit and dirtiness
