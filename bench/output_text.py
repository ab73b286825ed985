"""Output of a made-up training, for the benches: timestamps, words, numbers, some metrics."""

from __future__ import annotations

import random
from collections.abc import Iterator

METRICS = (
    "train_loss",
    "accuracy",
    "throughput",
    "learning_rate",
    "grad_norm",
    "step_time",
    "gpu_memory",
    "perplexity",
    "samples_seen",
    "validation_loss",
)
PATTERNS = {name: rf"{name}=([0-9.]+)" for name in METRICS}

_WORDS = (
    *("the", "of", "worker", "batch", "epoch", "device", "copy", "kernel", "launched", "memory"),
    *("allocated", "done", "waiting", "for", "queue", "rank", "node", "shard", "loading"),
    *("checkpoint", "cache", "host", "gradient", "bucket", "reduced", "optimizer", "step"),
)


def lines(matching: float, seed: int = 7) -> Iterator[str]:
    """Endless lines of which a share of ``matching`` holds a metric."""
    random_ = random.Random(seed)
    phrases = [" ".join(random_.choices(_WORDS, k=random_.randrange(4, 12))) for _ in range(5_000)]
    second = 0
    while True:
        second += random_.random() < 0.01
        stamp = f"2026-01-01 {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        if random_.random() < matching:
            metric = METRICS[int(random_.random() * len(METRICS))]
            yield f"{stamp} INFO step {second} {metric}={random_.random():.6f} done\n"
        else:
            phrase = phrases[int(random_.random() * len(phrases))]
            yield f"{stamp} INFO {phrase} {int(random_.random() * 1e6)}\n"


def text(megabytes: int, matching: float) -> bytes:
    """About so many millions of bytes of whole lines."""
    parts: list[bytes] = []
    size = 0
    source = lines(matching)
    while size < megabytes * 1_000_000:
        part = "".join(next(source) for _ in range(10_000)).encode()
        parts.append(part)
        size += len(part)
    return b"".join(parts)
