"""Pure mathematics on sequences of floats: no I/O, no clock, no noun of ours but the result."""
