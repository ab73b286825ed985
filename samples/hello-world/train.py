"""Learn to tell two interleaved spirals apart: a two-layer network, plain NumPy, Adam."""

import argparse
import itertools
import time

import numpy as np

from benchmarkai import emit

BATCH = 256
STEPS = 160  # per epoch; one epoch takes about 0.2 seconds on one core of 2020


def spirals(count, rng):
    """Points on two spirals with a little noise, and which spiral each is on."""
    turn = np.sqrt(rng.random(count)) * 3 * np.pi
    label = rng.integers(0, 2, count)
    angle = turn + np.pi * label
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (turn / 10)[:, None]
    return points + rng.normal(0, 0.02, points.shape), label.astype(float)


class Network:
    """Two hidden layers of tanh, one logistic output, trained by Adam."""

    def __init__(self, rng, width=128):
        sizes = [2, width, width, 1]
        self.weights = [rng.normal(0, 1 / np.sqrt(a), (a, b)) for a, b in itertools.pairwise(sizes)]
        self.biases = [np.zeros(b) for b in sizes[1:]]
        self.moments = [np.zeros_like(p) for p in self.weights + self.biases]
        self.squares = [np.zeros_like(p) for p in self.weights + self.biases]
        self.steps = 0

    def forward(self, points):
        """All activations; the last one is the probability of the second spiral."""
        layers = [points]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.tanh(layers[-1] @ weight + bias))
        score = layers[-1] @ self.weights[-1] + self.biases[-1]
        return [*layers, 1 / (1 + np.exp(-score))]

    def step(self, points, labels, rate=2e-3):
        """One step of Adam; gives the loss before it."""
        layers = self.forward(points)
        guess = layers[-1][:, 0]
        error = ((guess - labels) / len(labels))[:, None]
        weights, biases = [], []
        for index in reversed(range(len(self.weights))):
            weights.insert(0, layers[index].T @ error)
            biases.insert(0, error.sum(axis=0))
            if index:
                error = (error @ self.weights[index].T) * (1 - layers[index] ** 2)
        self.update(weights + biases, rate)
        guess = np.clip(guess, 1e-9, 1 - 1e-9)
        return float(-np.mean(labels * np.log(guess) + (1 - labels) * np.log(1 - guess)))

    def update(self, gradients, rate):
        """Move every parameter by its averaged gradient."""
        self.steps += 1
        for index, (parameter, gradient) in enumerate(
            zip(self.weights + self.biases, gradients, strict=True)
        ):
            self.moments[index] = 0.9 * self.moments[index] + 0.1 * gradient
            self.squares[index] = 0.999 * self.squares[index] + 0.001 * gradient**2
            mean = self.moments[index] / (1 - 0.9**self.steps)
            square = self.squares[index] / (1 - 0.999**self.steps)
            np.subtract(parameter, rate * mean / (np.sqrt(square) + 1e-8), out=parameter)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    network = Network(rng)
    test_points, test_labels = spirals(4096, rng)
    for epoch in range(1, options.epochs + 1):
        began = time.perf_counter()
        losses = [network.step(*spirals(BATCH, rng)) for _ in range(STEPS)]
        seconds = time.perf_counter() - began
        guess = network.forward(test_points)[-1][:, 0] > 0.5
        accuracy = float(np.mean(guess == test_labels))
        print(
            f"epoch {epoch:2d}/{options.epochs} loss={np.mean(losses):.5f} accuracy={accuracy:.4f}",
            flush=True,
        )
        emit({"epoch": epoch, "throughput": BATCH * STEPS / seconds})


if __name__ == "__main__":
    main()
