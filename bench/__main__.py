"""``python -m bench [NAME...]``: run every bench, or those named, each in a process of its own."""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
PATIENCE = 1800
"""Seconds until a bench counts as failed: the slowest (a thousand kills) needs a few minutes."""


def find() -> Mapping[str, str]:
    """Names of all benches with their titles. Reads the sources and imports nothing."""
    found = {}
    for file in sorted([*FOLDER.glob("*.py"), *FOLDER.glob("*/__init__.py")]):
        name = file.parent.name if file.name == "__init__.py" else file.stem
        tree = ast.parse(file.read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "main" in functions and name != "__main__":
            title = (ast.get_docstring(tree) or name).partition("\n")[0]
            found[name] = title.replace("``", "")
    return found


def run(name: str) -> bool:
    """Run one bench; whether it came to its end."""
    command = [sys.executable, "-c", f"from bench.{name} import main; main()"]
    try:
        result = subprocess.run(command, cwd=FOLDER.parent, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        print(f"stopped after {PATIENCE} s")
        return False
    return result.returncode == 0


def _choose(names: Sequence[str], known: Mapping[str, str]) -> Sequence[str]:
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no bench is called {unknown[0]!r}; there are: {', '.join(known)}")
    return names or list(known)


def main() -> int:
    """Run them one after the other; a failure stops none of the rest."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--list", action="store_true", help="list the benches and stop")
    options = parser.parse_args()
    known = find()
    if options.list:
        print("\n".join(f"{name:<14}{title}" for name, title in known.items()))
        return 0
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    print(f"{cores} cores, load average {load:.1f}{' (not quiet)' if load > cores / 4 else ''}")
    results = []
    for name in _choose(options.names, known):
        print(f"\n=== {name}: {known[name]}\n", flush=True)
        began = time.monotonic()
        results.append((name, run(name), time.monotonic() - began))
    print(f"\n{'bench':<20}{'result':<10}seconds")
    for name, is_good, seconds in results:
        print(f"{name:<20}{'ok' if is_good else 'FAILED':<10}{seconds:7.1f}")
    return 0 if all(is_good for _, is_good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
