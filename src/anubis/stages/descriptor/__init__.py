"""Read a descriptor, and explain all that is wrong with it at once. See ``README.md``."""
