"""What the engine brings along for a run: keys, code, and data that only this machine can read.

Keys are made once for a run, and kept with it: all its units must have the same.
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from anubis.adapters.engine.kubernetes.manifests import carrying
from anubis.adapters.engine.kubernetes.manifests.site import Brought, Carried
from anubis.adapters.engine.process.guardian import files
from anubis.domain import dataset
from anubis.domain import plan as plans
from anubis.domain.errors import DatasetInvalid
from anubis.domain.plan import Fetch, Plan
from anubis.ports.script_store import ScriptStore

KEYS: Final = "keys.json"
KeyMaker = Callable[[], Mapping[str, str]]


class Gatherer:
    """Finds what travels with runs."""

    def __init__(self, scripts: ScriptStore, make_keys: KeyMaker) -> None:
        self._scripts = scripts
        self._make_keys = make_keys

    async def gather(self, plan: Plan, folder: Path) -> Brought:
        """All that a plan needs from here. ``folder`` is the run's own.

        Raises UserError if code is not there, TooMuch if it cannot travel, DatasetInvalid
        for files of this machine that cannot be read.
        """
        return Brought(
            keys=self._keys(folder) if plan.needs_keys else {},
            scripts={
                name: await self._scripts.read(name, most=carrying.MOST)
                for name in plans.scripts(plan)
            },
            data={
                number: await asyncio.to_thread(_carried, fetch)
                for number, fetch in enumerate(plan.fetches)
                if is_local(fetch)
            },
        )

    def _keys(self, folder: Path) -> Mapping[str, str]:
        known = files.read_json(str(folder), KEYS)
        if known is None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            known = dict(self._make_keys())
            files.write_durably(str(folder), KEYS, json.dumps(known).encode(), sync=True)
        return {name: str(text) for name, text in known.items()}


def is_local(fetch: Fetch) -> bool:
    """Whether only this machine can read it."""
    return dataset.scheme_of(fetch.uri) in ("", "file")


def _carried(fetch: Fetch) -> Carried:
    path = Path(unquote(urlsplit(fetch.uri).path) if fetch.uri.startswith("file:") else fetch.uri)
    try:
        if path.is_dir():
            return Carried(name=path.name, content=_packed(fetch, path), is_folder=True)
        _must_be_small(fetch, path.stat().st_size)
        return Carried(name=path.name, content=path.read_bytes())
    except FileNotFoundError as error:
        raise DatasetInvalid(f"{fetch.field}.src: {path} is not there") from error
    except OSError as error:
        raise DatasetInvalid(f"{fetch.field}.src: {path}: {error.strerror}") from error


def _packed(fetch: Fetch, folder: Path) -> bytes:
    _must_be_small(fetch, sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()))
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        # The same folder must give the same bytes: they are the name under which nodes keep it.
        for path in sorted(folder.rglob("*")):
            archive.add(path, str(path.relative_to(folder)), recursive=False, filter=_plain)
    return content.getvalue()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = 0
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _must_be_small(fetch: Fetch, size: int) -> None:
    if size > carrying.MOST:
        raise DatasetInvalid(
            f"{fetch.field}.src: found a file of this machine with {size / 1024**2:.1f} MiB, which "
            f"is sent along with the run, expected at most {carrying.MOST // 1024**2} MiB; put it "
            "where pods can fetch it, such as s3:// or https://"
        )
