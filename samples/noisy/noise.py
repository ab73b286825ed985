"""Report latencies from a gamma distribution: mean 10 ms, standard deviation 10/3 ms."""

import argparse
import random

MEAN, SHAPE = 10.0, 9.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None, help="default: different every time")
    options = parser.parse_args()
    source = random.Random(options.seed)
    for number in range(options.count):
        latency = source.gammavariate(SHAPE, MEAN / SHAPE)
        print(f"request {number} latency {latency:.4f} ms")


if __name__ == "__main__":
    main()
