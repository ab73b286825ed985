"""A container's log as containerd writes it and the kubelet rotates it, in a folder of a test."""

from __future__ import annotations

import datetime as dt
import gzip
import pathlib

FIRST_NS = 1_700_000_000_000_000_000


class NodeLog:
    """The writers' side."""

    def __init__(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.current = folder / "0.log"
        self._at_ns = FIRST_NS
        self._rotations = 0

    def write(self, data: bytes, *, stream: str = "stdout", tag: str = "F", ns: int = 1000) -> int:
        """One line, some time after the one before; the time."""
        self._at_ns += ns
        with self.current.open("ab") as file:
            file.write(f"{stamp(self._at_ns)} {stream} {tag} ".encode() + data + b"\n")
        return self._at_ns

    def rotate(self, *, keep: int = 5) -> pathlib.Path:
        """Put the file away and compress those that were before it; the file's new name."""
        for path in sorted(self.folder.glob("0.log.*")):
            if path.suffix != ".gz":
                compressed = path.with_name(f"{path.name}.gz")
                compressed.write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
        for path in sorted(self.folder.glob("0.log.*"))[: -(keep - 2)]:
            path.unlink()
        self._rotations += 1
        away = self.folder / f"0.log.20240131-{self._rotations:06d}"
        self.current.rename(away)
        self.current.touch()
        return away


def stamp(at_ns: int) -> str:
    """A time as Go writes it: without zeros at its end."""
    seconds, rest = divmod(at_ns, 10**9)
    whole = dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{rest:09d}".rstrip("0").rstrip(".")
    return f"{whole}{fraction}Z"
