"""Two more files that the original client keeps in the home: who it says it is, and what it
submitted. Ours reads and writes them the same way, so that both can be used in turn.
"""

from __future__ import annotations

import contextlib
import hashlib
from datetime import datetime
from pathlib import Path

from anubis.domain.errors import StoreUnusable

CLIENT_ID, ACTION_IDS = "client_id", "action_ids"


def client_id(home: Path, *, user: str, host: str) -> str:
    """The id that was set, else the original's: the SHA-1 of ``user+host``."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = (home / CLIENT_ID).read_text("utf-8").split()
        if lines:
            return lines[-1]
    # A name, not a secret: the original client computes the very same.
    return hashlib.sha1(f"{user}+{host}".encode(), usedforsecurity=False).hexdigest()


def set_client_id(home: Path, text: str) -> None:
    """Set it; the empty text goes back to the default."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / CLIENT_ID).write_text(f"{text}\n" if text else "", "utf-8")
    except OSError as error:
        raise StoreUnusable(f"{home / CLIENT_ID} cannot be written: {error.strerror}") from error


def remember_action(home: Path, action_id: str, descriptor: str, at: datetime) -> None:
    """Add what was submitted to the original's list: ``<id> : <descriptor> : <date>``.

    For the convenience of the other client: where it cannot be written, nothing is lost.
    """
    path = " ".join(descriptor.split()) or "-"
    date = at.astimezone().strftime("%a %b %d %H:%M:%S %Z %Y")
    line = f"{action_id} : {path} : {date}\n".encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (home / ACTION_IDS).open("ab", buffering=0) as file:
            file.write(line)  # in one piece, so that lines of two shells do not mix
