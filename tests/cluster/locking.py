"""Locks between processes: two that build, start or end the cluster, and tests that share it.

A test that kills a part of the cluster must be alone with it. Tests that do not hold it together.
Who waits to be alone holds the turnstile, through which all others must pass: it does not wait for
ever while others come and go.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator

from tests.cluster.layout import Layout


@contextlib.contextmanager
def changing(place: Layout) -> Iterator[None]:
    """Start or end the cluster, as nobody else does at the same time."""
    with _held(place.root / "changing.lock", fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def building(place: Layout) -> Iterator[None]:
    """Build, as nobody else does at the same time."""
    with _held(place.root / "building.lock", fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def sharing(place: Layout) -> Iterator[None]:
    """Use the cluster together with others, while nobody kills parts of it."""
    with contextlib.ExitStack() as held:
        with _held(_turnstile(place), fcntl.LOCK_EX):
            held.enter_context(_held(_users(place), fcntl.LOCK_SH))
        yield


@contextlib.contextmanager
def alone(place: Layout) -> Iterator[None]:
    """Use the cluster while no other test does."""
    with _held(_turnstile(place), fcntl.LOCK_EX), _held(_users(place), fcntl.LOCK_EX):
        yield


def _turnstile(place: Layout) -> pathlib.Path:
    return place.root / "turnstile.lock"


def _users(place: Layout) -> pathlib.Path:
    return place.root / "users.lock"


@contextlib.contextmanager
def _held(file: pathlib.Path, how: int) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Only read: the file may belong to root, and whoever runs the tests need not be.
    lock = os.open(file, os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, how)  # ends with the file, or with this process
        yield
    finally:
        os.close(lock)
