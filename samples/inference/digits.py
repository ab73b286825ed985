"""Ten digits as small pictures, drawn again and again with noise."""

import random

WIDTH, HEIGHT = 5, 7
PIXELS = WIDTH * HEIGHT

GLYPHS = [
    [int(pixel) for row in glyph.split() for pixel in row]
    for glyph in (
        "01110 10001 10011 10101 11001 10001 01110",
        "00100 01100 00100 00100 00100 00100 01110",
        "01110 10001 00001 00110 01000 10000 11111",
        "11111 00010 00100 00010 00001 10001 01110",
        "00010 00110 01010 10010 11111 00010 00010",
        "11111 10000 11110 00001 00001 10001 01110",
        "00110 01000 10000 11110 10001 10001 01110",
        "11111 00001 00010 00100 01000 01000 01000",
        "01110 10001 10001 01110 10001 10001 01110",
        "01110 10001 10001 01111 00001 00010 01100",
    )
]


def draw(rng: random.Random, noise=0.5):
    """A picture with noise, and which digit it shows."""
    digit = rng.randrange(10)
    return [pixel + rng.gauss(0, noise) for pixel in GLYPHS[digit]], digit
