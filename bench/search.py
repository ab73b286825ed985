"""Output to durable and searchable: MB/s, and query times beside ripgrep and a scan of frames.

Writing: CPU time of one core for appending all output and sealing it (compressed frames and the
full-text index). Queries: wall time, the best of some rounds, to all matching lines or to the
newest 50. The peers look for the same text: ripgrep in the raw file (start of the program
included), and a loop over our frames without the index. tantivy is compared if it is installed.
Goals: 30 MB/s per core; over 1 GB, what the index can look up in 10 ms, anything else in 3 s.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import importlib
import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from anubis.adapters.log_store.local import LocalLogStore, reading
from anubis.domain.observation import Stream
from anubis.domain.run import RunId
from anubis.ports.log_store import LogQuery
from bench import output_text

RUN = RunId("00000000-0000-7000-8000-000000000001")
CHUNK = 1 << 20  # how the process engine hands output over
RARE = b"2026-01-01 00:00:00 ERROR worker 17 failed: out of memory on gpu3, token kx91q7\n"

QUERIES = {
    "rare word": LogQuery(contains="kx91q7"),
    "part of a rare word": LogQuery(contains="x91q"),
    "prefix": LogQuery(contains=" kx91"),
    "phrase": LogQuery(contains="failed: out of memory"),
    "common word, newest 50": LogQuery(contains="checkpoint", tail=50),
    "word that is nowhere": LogQuery(contains="segfault"),
    "digits inside a number": LogQuery(contains="918273"),
}


def generate(path: Path, megabytes: int) -> None:
    """Write output with three rare lines in it."""
    text = output_text.text(megabytes, 0.1)
    with path.open("wb") as file:
        for part in range(4):
            start = text.find(b"\n", len(text) * part // 4) + 1 if part else 0
            end = text.find(b"\n", len(text) * (part + 1) // 4) + 1 or len(text)
            file.write(text[start:end] + (RARE if part < 3 else b""))


async def fill(store: LocalLogStore, path: Path) -> tuple[float, float]:
    """Append and seal; CPU seconds for each."""
    started = time.process_time()
    writer = await store.writer(RUN)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            whole, newline, after = (rest + chunk).rpartition(b"\n")
            await writer.append("benchmark", Stream.STDOUT, at, whole + newline)
            rest = after
    await writer.append("benchmark", Stream.STDOUT, at, rest)
    await writer.flush()
    appended = time.process_time()
    await writer.seal()
    return appended - started, time.process_time() - appended


async def ours(store: LocalLogStore, query: LogQuery) -> int:
    return len([line async for line in store.lines(RUN, query)])


async def scan(root: Path, query: LogQuery) -> int:
    """How many frames hold the text, by looking into all of them."""
    wanted = query.contains.encode()
    [path] = root.rglob("*.log")
    log = reading.LogFile.open(path)
    assert log is not None
    with log:
        return sum(wanted in log.content(header) for header in log.headers())


async def ripgrep(path: Path, query: LogQuery) -> int:
    command = ["rg", "--no-config", "-F", "-c", query.contains, str(path)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    return int(done.stdout or 0)


async def best(work: Callable[[], Awaitable[int]], rounds: int) -> tuple[float, int]:
    """The shortest wall time in milliseconds, and the result."""
    shortest, result = float("inf"), 0
    for _ in range(rounds):
        started = time.perf_counter()
        result = await work()
        shortest = min(shortest, 1000 * (time.perf_counter() - started))
    return shortest, result


async def compare(store: LocalLogStore, root: Path, path: Path, rounds: int) -> None:
    has_ripgrep = shutil.which("rg") is not None
    print(
        f"\n{'query, ms':24} {'lines':>7} {'anubis':>9} {'scan':>9} {'rg':>9} {'rg ÷ anubis':>12}"
    )
    for name, query in QUERIES.items():
        ms, count = await best(functools.partial(ours, store, query), rounds)
        scanned, _ = await best(functools.partial(scan, root, query), 1)
        line = f"{name:24} {count:7,} {ms:9.1f} {scanned:9.0f}"
        if has_ripgrep:
            peer, _ = await best(functools.partial(ripgrep, path, query), rounds)
            line += f" {peer:9.0f} {peer / ms:12.1f}"
        print(line)
    if not has_ripgrep:
        print("skipped: ripgrep, which is not installed (package ripgrep)")


def compare_tantivy(root: Path, folder: Path, megabytes: float) -> None:
    """The same frames as documents of tantivy, without positions."""
    if importlib.util.find_spec("tantivy") is None:
        print("skipped: tantivy, which is not installed")
        return
    tantivy = importlib.import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, index_option="basic")
    builder.add_integer_field("frame", stored=True)
    folder.mkdir()
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(num_threads=1)
    [path] = root.rglob("*.log")
    log = reading.LogFile.open(path)
    assert log is not None
    started = time.process_time()
    with log:
        for position, header in enumerate(log.headers()):
            text = log.content(header)[-header.text_size :].decode()
            writer.add_document(tantivy.Document(text=text, frame=position))
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.process_time() - started
    index.reload()
    started = time.perf_counter()
    hits = index.searcher().search(index.parse_query("kx91q7", ["text"]), 10).hits
    query = 1000 * (time.perf_counter() - started)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    print(
        f"\ntantivy, same frames as documents: index {megabytes / seconds:.0f} MB/s of CPU, "
        f"{size:.0f} MB; rare word {query:.1f} ms to {len(hits)} frames"
    )


async def bench(megabytes: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        raw, root = Path(folder) / "output.txt", Path(folder) / "logs"
        generate(raw, megabytes)
        size = raw.stat().st_size / 1e6
        store = LocalLogStore(root)
        appended, sealed = await fill(store, raw)
        _, on_disk = await store.size(RUN)
        index = sum(path.stat().st_size for path in root.rglob("*.fts")) / 1e6
        print(f"{size:.0f} MB of output; MB/s per core, CPU time")
        print(f"append {size / appended:.0f}, seal {size / sealed:.0f}", end="")
        print(f", both {size / (appended + sealed):.1f} (goal 30)")
        print(f"on disk {on_disk / 1e6:.0f} MB, of which index {index:.0f} MB")
        await compare(store, root, raw, rounds)
        await asyncio.to_thread(compare_tantivy, root, Path(folder) / "tantivy", size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(bench(given.megabytes, given.rounds))


if __name__ == "__main__":
    main()
