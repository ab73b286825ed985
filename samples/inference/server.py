"""A model server: it learns ten digits when it starts, then answers which digit a picture shows.

GET /health answers 503 while it learns and 200 afterwards; POST /predict takes {"pixels": [...]}.
Only the standard library, so that it runs in any image with Python.
"""

import argparse
import http.server
import json
import math
import random
import signal
import sys
import threading
import time

import digits


class Model:
    """Softmax regression: one weight for each pixel and digit."""

    def __init__(self):
        self.weights = [[0.0] * (digits.PIXELS + 1) for _ in range(10)]

    def probabilities(self, pixels):
        """How likely each digit is."""
        scores = [row[-1] + sum(map(float.__mul__, row, pixels)) for row in self.weights]
        highest = max(scores)
        powers = [math.exp(score - highest) for score in scores]
        total = sum(powers)
        return [power / total for power in powers]

    def step(self, pixels, digit, rate):
        """Learn from one picture."""
        for number, probability in enumerate(self.probabilities(pixels)):
            error = rate * (probability - (number == digit))
            row = self.weights[number]
            for index, pixel in enumerate(pixels):
                row[index] -= error * pixel
            row[-1] -= error

    def predict(self, pixels):
        """The most likely digit, and how likely it is."""
        probabilities = self.probabilities(pixels)
        best = max(range(10), key=probabilities.__getitem__)
        return best, probabilities[best]


def trained(steps, seed):
    """A model that has seen so many pictures."""
    rng = random.Random(seed)
    model = Model()
    began = time.perf_counter()
    for step in range(steps):
        model.step(*digits.draw(rng), rate=0.2 / (1 + step / 500))
    seconds = time.perf_counter() - began
    tests = [digits.draw(rng) for _ in range(500)]
    right = sum(model.predict(pixels)[0] == digit for pixels, digit in tests)
    say(
        f"trained on {steps} pictures in training_time={seconds:.2f} s: "
        f"test_accuracy={right / len(tests):.3f}"
    )
    return model


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers one connection, which may ask many times."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model = None

    def do_GET(self):
        if self.path != "/health":
            self.answer(404, {"error": f"there is no {self.path}"})
        elif Answers.model is None:
            self.answer(503, {"status": "learning"})
        else:
            self.answer(200, {"status": "ready"})

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            pixels = [float(pixel) for pixel in body["pixels"]]
        except (KeyError, TypeError, ValueError) as error:
            return self.answer(400, {"error": f"expected pixels: {error!r}"})
        if Answers.model is None:
            return self.answer(503, {"error": "still learning"})
        digit, probability = Answers.model.predict(pixels)
        return self.answer(200, {"digit": digit, "probability": probability})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        say(f"{self.command} {self.path} {status}")


def say(text):
    """Write a whole line at once: many threads do."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()

    # Said explicitly because the first process of a container ignores SIGTERM otherwise.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = Server(("", options.port), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"listening on port {options.port}")
    Answers.model = trained(options.steps, options.seed)
    say("ready")
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
