"""Kubernetes objects as people write them: YAML, with texts of several lines as such."""

from __future__ import annotations

from collections.abc import Sequence

from anubis.domain.errors import UserError

WIDTH = 100


def documents(objects: Sequence[dict[str, object]]) -> str:
    """One document after the other, as ``kubectl apply -f -`` takes them.

    Raises UserError if the library is not installed.
    """
    try:
        # Only these commands need it, and it is part of an extra.
        import yaml
    except ImportError as error:
        raise UserError(
            "YAML needs a library that is not installed: pip install 'anubis[kubernetes]'; "
            "or use --json, which kubectl takes as well"
        ) from error

    class Dumper(yaml.SafeDumper):
        """Writes what has several lines in several lines."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        is_plain = "\n" in value and all(line == line.rstrip() for line in value.split("\n"))
        style = "|" if is_plain else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    Dumper.ignore_aliases = lambda _self, _data: True  # type: ignore[method-assign, assignment]
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
