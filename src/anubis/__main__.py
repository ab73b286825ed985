"""The command ``anubis``, and ``python -m anubis``."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""


if __name__ == "__main__":
    main()
