"""Darts that hit a square at random, and how many of them hit the quarter circle in it."""


def hits(source, count):
    """Throw so many darts and count those within the circle."""
    return sum(source.random() ** 2 + source.random() ** 2 <= 1.0 for _ in range(count))
