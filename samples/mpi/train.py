"""Data-parallel training: every process learns from its own data, and all of them share gradients.

Logistic regression by stochastic gradient descent. After each step the gradients of all processes
are added up (all-reduce), so that all of them go the same way. Needs mpi4py and nothing else.
"""

import argparse
import array
import math
import random
import socket
import time

from mpi4py import MPI

FEATURES = 64
BATCH = 128  # of each process and step


def say(text):
    """Write a whole line at once: several processes do."""
    print(text, flush=True)


class Shard:
    """Examples that one process learns from, as many as it wants. The answer has a few errors."""

    def __init__(self, seed, rank):
        rule = random.Random(seed)  # the same everywhere: it is what there is to learn
        self.truth = [rule.gauss(0, 1) for _ in range(FEATURES)]
        self.rng = random.Random(f"{seed} {rank}")

    def example(self):
        features = [self.rng.gauss(0, 1) for _ in range(FEATURES)]
        score = sum(map(float.__mul__, self.truth, features))
        return features, float(score > 0) if self.rng.random() > 0.02 else float(score <= 0)

    def batches(self, count):
        return [[self.example() for _ in range(BATCH)] for _ in range(count)]


def gradient(weights, batch):
    """The gradient for a batch with its loss as the last element, for one all-reduce of both."""
    total = array.array("d", bytes(8 * (FEATURES + 1)))
    for features, label in batch:
        score = sum(map(float.__mul__, weights, features))
        guess = 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))
        error = (guess - label) / BATCH
        for index, feature in enumerate(features):
            total[index] += error * feature
        total[FEATURES] -= math.log(guess if label else 1 - guess) / BATCH
    return total


def epoch(weights, batches, group, rate=0.5):
    """Learn from all batches together with the group; the mean loss and examples per second."""
    losses = 0.0
    began = time.perf_counter()
    for batch in batches:
        change = gradient(weights, batch)
        group.Allreduce(MPI.IN_PLACE, [change, MPI.DOUBLE], MPI.SUM)
        for index in range(FEATURES):
            weights[index] -= rate * change[index] / group.size
        losses += change[FEATURES] / group.size
    seconds = time.perf_counter() - began
    return losses / len(batches), len(batches) * BATCH * group.size / seconds


def wait_for_all(group):
    """Like a barrier, but without burning the CPU that somebody else needs meanwhile."""
    request = group.Ibarrier()
    while not request.Test():
        time.sleep(0.01)


def alone(world, batches):
    """What the first process can do by itself, in examples per second, while the others wait."""
    speed = 0.0
    if world.rank == 0:
        weights = array.array("d", bytes(8 * FEATURES))
        speed = max(epoch(weights, batches, MPI.COMM_SELF)[1] for _ in range(3))
    wait_for_all(world)
    return speed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20, help="in each epoch")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()

    world = MPI.COMM_WORLD
    say(f"process {world.rank} of {world.size} on {socket.gethostname()}")
    shard = Shard(options.seed, world.rank)
    reference = alone(world, shard.batches(options.steps))
    weights = array.array("d", bytes(8 * FEATURES))
    for number in range(1, options.epochs + 1):
        batches = shard.batches(options.steps)
        wait_for_all(world)
        loss, speed = epoch(weights, batches, world)
        if world.rank == 0:
            efficiency = speed / (reference * world.size)
            say(
                f"epoch {number:2d}/{options.epochs} loss={loss:.4f} "
                f"throughput={speed:.0f} efficiency={efficiency:.3f}"
            )

    everybody = world.allgather(weights.tobytes())
    assert everybody.count(weights.tobytes()) == world.size, "the processes went different ways"
    steps = options.epochs * options.steps
    say(f"process {world.rank} of {world.size} learned from {steps} batches")


if __name__ == "__main__":
    main()
