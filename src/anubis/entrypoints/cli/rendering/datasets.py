"""Datasets in a table, and how far a transfer is in a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from anubis.domain import dataset
from anubis.domain.dataset import Dataset, DatasetKey, Progress
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, table

SHORT = 12
"""Digits of a key that are as good as unique."""

_COLUMNS = (
    Column(title="key"),
    Column(title="dataset", shortens_to=20),
    Column(title="size", right=True),
    Column(title="files", right=True, leaves=0),
    Column(title="used", leaves=2),
    Column(title="pinned", leaves=1),
)


def datasets_table(datasets: Sequence[Dataset], now: datetime, *, width: int | None) -> str:
    """The datasets in the order given, cut to a terminal of this width; whole without one."""
    if not datasets:
        return "no datasets\n"
    rows = [_row(one, now, is_short=width is not None) for one in datasets]
    return table(_COLUMNS, rows, width=width) + f"\n{total(datasets)}\n"


def total(datasets: Sequence[Dataset]) -> str:
    """How many they are, and what they take together."""
    size = text.size(taken(datasets))
    return f"{len(datasets):,} dataset{'' if len(datasets) == 1 else 's'}, {size}"


def taken(datasets: Iterable[Dataset]) -> int:
    """The bytes that they take together: equal content is held once, whatever it is called."""
    return sum({one.digest: one.size_bytes for one in datasets}.values())


def short(key: DatasetKey) -> str:
    """The beginning of a key, for people."""
    return key[:SHORT]


def named(found: Dataset) -> str:
    """A dataset in a sentence."""
    return f"{short(found.key)} ({text.printable(dataset.shown(found.reference.uri))})"


def transfer(progress: Progress, seconds: float) -> str:
    """How far a transfer is, and how fast it has been so far."""
    done = text.size(progress.done_bytes)
    if progress.total_bytes is not None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0
        done = f"{done} of {text.size(progress.total_bytes)}, {min(share, 1.0):.0%}"
    speed = f", {text.size(progress.done_bytes / seconds)}/s" if seconds >= 1 else ""
    return f"{text.printable(dataset.shown(progress.uri))}: {done}{speed}"


def _row(found: Dataset, now: datetime, *, is_short: bool) -> list[Cell]:
    pins = len(found.pinned_by)
    return [
        Cell(text=short(found.key) if is_short else found.key),
        Cell(text=text.printable(dataset.shown(found.reference.uri))),
        Cell(text=text.size(found.size_bytes)),
        Cell(text=f"{found.files:,}"),
        Cell(text=text.age(found.used_at, now)),
        Cell(text=f"{pins} run{'' if pins == 1 else 's'}" if pins else "", colour="cyan"),
    ]
