"""What all processes of a container use, as the kernel counts it for their control group.

Both kinds of hierarchy are read, with one mount per controller (v1) and with one for all (v2), and
whichever way the daemon names its groups: a process of the container knows where it is.
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH112

from __future__ import annotations

import os

MOUNTS = "/proc/self/mountinfo"
WANTED = ("cpuacct", "memory", "blkio", "pids")

Reading = tuple[int, int, int, int, int, int]
"""CPU ns, resident bytes, read bytes, written bytes, threads, processes: as in the journal."""


class Group:
    """The control group of one container; ``find`` makes it."""

    __slots__ = ("_folders", "_helpers", "last", "peak")

    def __init__(self, folders: dict[str, str], helpers: int) -> None:
        self._folders = folders  #: controller to folder; the empty name is that of v2
        self._helpers = helpers  #: processes in it that are not the program's
        self.last: Reading | None = None
        self.peak = 0

    def read(self) -> Reading | None:
        """What is used now; None when the group is gone, or does not tell."""
        try:
            reading = self._read_v2(self._folders[""]) if "" in self._folders else self._read_v1()
        except (OSError, ValueError, KeyError, IndexError):
            return None
        self.peak = max(self.peak, reading[1])
        self.last = reading
        return reading

    def _read_v1(self) -> Reading:
        folders = self._folders
        memory = _table(f"{folders['memory']}/memory.stat")
        used = _number(f"{folders['memory']}/memory.usage_in_bytes")
        # As "docker stats" does: pages of files that nobody needs now are not the program's.
        resident = max(0, used - memory.get("total_inactive_file", 0))
        read, written = _throttled(f"{folders['blkio']}/blkio.throttle.io_service_bytes_recursive")
        cpu = _number(f"{folders['cpuacct']}/cpuacct.usage")
        return (cpu, resident, read, written, *self._tasks(folders["pids"]))

    def _read_v2(self, folder: str) -> Reading:
        cpu = _table(f"{folder}/cpu.stat")["usage_usec"] * 1000
        inactive = _table(f"{folder}/memory.stat").get("inactive_file", 0)
        resident = max(0, _number(f"{folder}/memory.current") - inactive)
        read = written = 0
        for line in _lines(f"{folder}/io.stat"):
            values = dict(word.split(b"=", 1) for word in line.split() if b"=" in word)
            read += int(values.get(b"rbytes", 0))
            written += int(values.get(b"wbytes", 0))
        return (cpu, resident, read, written, *self._tasks(folder))

    def _tasks(self, folder: str) -> tuple[int, int]:
        threads = _number(f"{folder}/pids.current") - self._helpers
        processes = sum(1 for _ in _lines(f"{folder}/cgroup.procs")) - self._helpers
        return max(0, threads), max(0, processes)


def find(process: int, container: str, helpers: int) -> Group | None:
    """The group of a container whose first process is this one.

    None if that process is not the container's: the daemon may count processes otherwise than we,
    where one of us is in a container itself.
    """
    try:
        lines = _lines(f"/proc/{process}/cgroup")
        mounts = _lines(MOUNTS)
    except OSError:
        return None
    folders: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.decode().split(":", 2)
        if container not in path:
            continue
        for controller in controllers.split(","):
            if place := _place(mounts, controller, path):
                folders[controller] = place
    if all(name in folders for name in WANTED):
        folders.pop("", None)
        return Group(folders, helpers)
    return Group({"": folders[""]}, helpers) if "" in folders else None


def _place(mounts: list[bytes], controller: str, path: str) -> str | None:
    """Where the files of a group are; the last mount of a hierarchy is as good as any."""
    for line in mounts:
        left, _, right = line.decode("utf-8", "replace").partition(" - ")
        kind, _, options = right.split(" ", 2)
        is_it = kind == "cgroup2" if not controller else controller in options.split(",")
        if not is_it or not kind.startswith("cgroup"):
            continue
        root, point = left.split(" ")[3:5]
        inner = path if root == "/" else path.removeprefix(root)
        if os.path.isdir(f"{point}{inner}"):
            return f"{point}{inner}"
    return None


def _throttled(path: str) -> tuple[int, int]:
    """Bytes read and written, over all devices."""
    totals = {b"Read": 0, b"Write": 0}
    for line in _lines(path):
        words = line.split()
        if len(words) == 3 and words[1] in totals:
            totals[words[1]] += int(words[2])
    return totals[b"Read"], totals[b"Write"]


def _table(path: str) -> dict[str, int]:
    pairs = (line.split() for line in _lines(path))
    return {name.decode(): int(value) for name, value in pairs}


def _number(path: str) -> int:
    return int(_lines(path)[0])


def _lines(path: str) -> list[bytes]:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
        return file.read().splitlines()
