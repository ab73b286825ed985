"""Read a dataset again and compare it with what was fetched."""

from __future__ import annotations

import threading
from pathlib import Path

from anubis.adapters.dataset_cache.directory import trees
from anubis.domain.dataset import Dataset, DatasetKind


class Reading:
    """One look at all bytes. Runs in a thread; ``stop`` may come from any."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._stop = threading.Event()

    def is_unchanged(self) -> bool:
        """Whether the bytes still have their digest."""
        path = Path(self._dataset.path)
        try:
            if self._dataset.kind is DatasetKind.FILE:
                found = trees.hash_of(path, self._stop)
            else:
                found = trees.digest(path, stop=self._stop)
        except OSError:  # gone, or the disk cannot read it
            return False
        return f"sha256:{found}" == self._dataset.digest

    def stop(self) -> None:
        """Have it end soon."""
        self._stop.set()
