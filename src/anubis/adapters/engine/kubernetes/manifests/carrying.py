"""What the engine brings along travels in Secrets, in parts, as no Secret may be large.

All parts are seen as one folder by what fetches, which puts them together.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Brought, Carried, Setting

FOLDER: Final = "/anubis-code"
"""Where what fetches finds the parts."""

PLACE: Final = "/anubis-brought"
"""Where it puts data together."""

MOST_PER_SECRET: Final = 700 * 1024
"""A Secret holds 1 MiB; in the database of the cluster it is a third larger, of 1.5 MiB."""

MOST: Final = 32 * 1024**2
"""Of all parts of a run. They are kept in the database of the cluster, which has 2 GiB for all."""


def numbered(brought: Brought) -> Mapping[str, tuple[range, bytes]]:
    """Each content by its name, with the numbers of its parts."""
    contents = {name: brought.scripts[name] for name in sorted(brought.scripts)}
    contents |= {path(one): one.content for _, one in sorted(brought.data.items())}
    counted = itertools.accumulate(
        (max(1, -(-len(content) // MOST_PER_SECRET)) for content in contents.values()), initial=0
    )
    return {
        name: (range(start, end), contents[name])
        for name, (start, end) in zip(contents, itertools.pairwise(counted), strict=True)
    }


def path(carried: Carried) -> str:
    """Where data is put together. The same content has the same path in every run, and thereby the
    same place in the cache.
    """
    return f"{PLACE}/{hashlib.sha256(carried.content).hexdigest()}/{carried.name}"


def parts(brought: Brought) -> Mapping[str, list[str]]:
    """Of what each content is put together, by its name."""
    return {
        name: [f"{FOLDER}/{_part(number)}" for number in numbers]
        for name, (numbers, _) in numbered(brought).items()
    }


def secrets(setting: Setting, labels: Mapping[str, str]) -> Iterator[Manifest]:
    """The Secrets that hold the parts."""
    for numbers, content in numbered(setting.brought).values():
        for place, number in enumerate(numbers):
            part = content[place * MOST_PER_SECRET : (place + 1) * MOST_PER_SECRET]
            yield {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": setting.names.code(number),
                    "namespace": setting.names.namespace,
                    "labels": dict(labels),
                },
                "immutable": True,
                "data": {_part(number): base64.b64encode(part).decode()},
            }


def volume(setting: Setting) -> Manifest:
    """All parts as one folder."""
    total = sum(len(numbers) for numbers, _ in numbered(setting.brought).values())
    sources = [{"secret": {"name": setting.names.code(number)}} for number in range(total)]
    return {"name": "code", "projected": {"sources": sources}}


def obstacles(brought: Brought) -> Iterator[str]:
    """Why it cannot travel."""
    size = sum(map(len, brought.scripts.values()))
    size += sum(len(one.content) for one in brought.data.values())
    if size > MOST:
        yield (
            f"code and files of this machine: found {size / 1024**2:.1f} MiB, expected at most "
            f"{MOST // 1024**2} MiB, since they travel through the database of the cluster; put "
            "what is large where pods can fetch it, such as s3:// or https://, and name it in "
            "data.sources"
        )


def _part(number: int) -> str:
    return f"part-{number:03}"
