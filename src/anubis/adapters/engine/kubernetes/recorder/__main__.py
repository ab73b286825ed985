"""``python3 -m anubis.adapters.engine.kubernetes.recorder``; see the package."""

from __future__ import annotations

import os
import sys

from anubis.adapters.engine.kubernetes.recorder import stopping
from anubis.adapters.engine.kubernetes.recorder.specifying import VARIABLE, Places, Spec


def main(words: list[str]) -> None:
    """Do what the words say. Exits with 2 if they say nothing that we know."""
    if words in ([], ["run"]):
        _run()
    elif len(words) == 3 and words[0] == "stop":
        stopping.ask(Places().record, stopping.parse_seconds(words[1]), words[2])
    elif words == ["release"]:
        stopping.release(Places().record)
    else:
        raise ValueError(f"found {' '.join(words)!r}, expected run, stop GRACE CAUSE or release")


def _run() -> None:
    # Only here: who asks for a stop shall be quick.
    from anubis.adapters.engine.kubernetes.recorder.running import Recorder

    text = os.environ.get(VARIABLE)
    if text is None:
        raise ValueError(f"{VARIABLE} is not set: it holds what is to be recorded, as JSON")
    Recorder(Spec.parse(text)).run()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, KeyError, TypeError) as problem:
        sys.stderr.write(f"recorder: {problem}\n")
        sys.exit(2)
