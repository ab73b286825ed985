"""Estimate pi round after round, from all darts so far, and report how fast they flew."""

import argparse
import random
import time

from darts import hits  # a file of the same folder: all of it was submitted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--darts", type=int, default=20_000, help="per round")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    source = random.Random(options.seed)
    inside = 0
    for number in range(1, options.rounds + 1):
        began = time.perf_counter()
        inside += hits(source, options.darts)
        seconds = time.perf_counter() - began
        pi = 4 * inside / (number * options.darts)
        print(f"round {number} pi={pi:.6f} throughput={options.darts / seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
