"""Read points from a CSV file again and again, and draw the best straight line through them."""

import argparse
import csv
import pathlib
import time


def read(path):
    """The points of a file."""
    with path.open(newline="") as file:
        return [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]


def line(points):
    """Slope and intercept by least squares."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )
    return slope, mean_y - slope * mean_x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()

    size = options.file.stat().st_size
    for number in range(1, options.rounds + 1):
        began = time.perf_counter()
        points = read(options.file)
        slope, intercept = line(points)
        seconds = time.perf_counter() - began
        print(
            f"round {number}/{options.rounds} rows_per_second={len(points) / seconds:.0f} "
            f"bytes_per_second={size / seconds:.0f}",
            flush=True,
        )
    print(f"rows={len(points)} slope={slope:.4f} intercept={intercept:.4f}", flush=True)


if __name__ == "__main__":
    main()
