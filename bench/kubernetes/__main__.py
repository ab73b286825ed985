"""``python -m bench.kubernetes``: see the package."""

from __future__ import annotations

from bench.kubernetes import main

if __name__ == "__main__":
    main()
