"""Read what a pod shall bring. The engine's manifests write it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import NotRequired, TypedDict

from anubis.bootstrap.podding import Order, Wanted
from anubis.domain.dataset import Reference, checksum
from anubis.domain.run import RunId


class FetchText(TypedDict):
    """One dataset."""

    uri: str
    checksum: str
    unpack: bool
    link: str
    parts: NotRequired[list[str]]
    form: NotRequired[str]


class OrderText(TypedDict):
    """The whole of ``ANUBIS_FETCH``."""

    run: str
    datasets: str
    fetches: list[FetchText]
    scripts: dict[str, list[str]]
    scripts_target: str
    hosts: list[str]
    seconds: float


def parse(text: str) -> Order:
    """Raises ValueError, KeyError or TypeError for what no engine of ours writes."""
    told: OrderText = json.loads(text)
    return Order(
        run=RunId(told["run"]),
        datasets=Path(told["datasets"]),
        wanted=tuple(_wanted(one) for one in told["fetches"]),
        scripts=told["scripts"],
        scripts_target=Path(told["scripts_target"]),
        hosts=tuple(told["hosts"]),
        patience=timedelta(seconds=told["seconds"]),
    )


def _wanted(told: FetchText) -> Wanted:
    reference = Reference(
        uri=told["uri"], checksum=checksum(told["checksum"]), unpack=told["unpack"]
    )
    if "/" in told["link"] or told["link"].startswith("."):
        raise ValueError(f"link: found {told['link']!r}, expected a name")
    return Wanted(
        reference=reference,
        link=told["link"],
        parts=tuple(told.get("parts", ())),
        is_folder=told.get("form") == "tar",
    )
