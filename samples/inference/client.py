"""Ask the model server as fast as it answers, and report throughput and latency.

Only the standard library, so that it runs in any image with Python.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import time

import digits

try:
    from benchmarkai import emit
except ImportError:  # not installed in the image: this is all that emit() does

    def emit(metrics):
        line = json.dumps(metrics) + "\n"
        if pipe := os.environ.get("BENCHMARK_AI_FIFO_FILEPATH"):
            with pathlib.Path(pipe).open("w") as file:
                file.write(line)
        else:
            print(line, end="", flush=True)


def ask(host, port, requests, seed):
    """Ask one question after the other; the latencies in seconds, and how many were right."""
    rng = random.Random(seed)
    connection = http.client.HTTPConnection(host, port, timeout=30)
    latencies, right = [], 0
    for _ in range(requests):
        pixels, digit = digits.draw(rng)
        body = json.dumps({"pixels": pixels})
        began = time.perf_counter()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        latencies.append(time.perf_counter() - began)
        if answer.status != 200:
            raise SystemExit(f"the server answered {answer.status}: {content.decode()}")
        right += json.loads(content)["digit"] == digit
    connection.close()
    return latencies, right


def percentile(values, percent):
    """The nearest rank: of 100 values the 99th for 99 percent."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default=os.environ.get("INFERENCE_SERVER_HOST", "localhost"))
    parser.add_argument("--port", default=os.environ.get("INFERENCE_SERVER_PORT", "8080"), type=int)
    parser.add_argument("--clients", type=int, default=4, help="how many ask at the same time")
    parser.add_argument("--requests", type=int, default=100, help="of each client and round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    print(f"asking {options.host}:{options.port}", flush=True)
    everything, right = [], 0
    for number in range(1, options.rounds + 1):
        began = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
            seeds = [number * options.clients + client for client in range(options.clients)]
            found = list(
                pool.map(lambda s: ask(options.host, options.port, options.requests, s), seeds)
            )
        seconds = time.perf_counter() - began
        latencies = [latency for some, _ in found for latency in some]
        everything += latencies
        right += sum(count for _, count in found)
        print(
            f"round {number}/{options.rounds} throughput={len(latencies) / seconds:.1f} requests/s",
            flush=True,
        )
        emit({"latency_mean": 1000 * sum(latencies) / len(latencies), "round": number})

    for percent in (50, 95, 99):
        print(f"latency p{percent}={1000 * percentile(everything, percent):.3f} ms", flush=True)
    print(f"requests={len(everything)} accuracy={right / len(everything):.4f}", flush=True)


if __name__ == "__main__":
    main()
