"""Bring what a run needs to where its units can read it: code, data, small files, keys.

Each run has a place of its own below ``root``, as long as it needs one:

scripts/  the code that was submitted beside the descriptor: a copy, which the program may change
files/    what the plan itself says, and in ``keys/`` the keys made for this run
data/0    a link to the first dataset that the plan fetches, and so on

What is there is whole, for everything is made beside its place and then renamed. So bringing it
again after a crash does nothing twice, and changes nothing under units that run already.
"""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from anubis.domain import plan as plans
from anubis.domain.dataset import Report
from anubis.domain.errors import UserError
from anubis.domain.plan import Plan
from anubis.domain.run import RunId
from anubis.ports.dataset_cache import DatasetCache
from anubis.ports.script_store import ScriptStore
from anubis.stages.fetching.fetching import fetch_all

SCRIPTS, FILES, KEYS, DATA = "scripts", "files", "keys", "data"

KeyMaker = Callable[[], Mapping[str, str]]
"""Gives the files of a new pair of keys, by name."""


def is_needed(plan: Plan) -> bool:
    """Whether a run of this plan needs a place at all."""
    return bool(plan.fetches or plan.files or plan.needs_keys or plans.scripts(plan))


class Bringing(Protocol):
    """What the runtime asks of whoever brings things."""

    async def bring(self, run_id: RunId, plan: Plan, report: Report) -> None:
        """Have everything in its place. Safe to repeat; cancelling stops transfers.

        Raises what the dataset cache does, and UserError if an archive of code is not there.
        """
        ...

    def placed(self, run_id: RunId, plan: Plan) -> Plan:
        """The plan with the folders of this run filled in."""
        ...

    async def remove(self, run_id: RunId) -> None:
        """Forget the place of a run, and let go of its datasets. Safe to repeat."""
        ...

    async def leftovers(self) -> Sequence[RunId]:
        """Runs that still have a place, or hold datasets."""
        ...


class Bringer:
    """Brings things below ``root``."""

    def __init__(
        self, root: Path, scripts: ScriptStore, datasets: DatasetCache, make_keys: KeyMaker
    ) -> None:
        self._root = root.absolute()
        self._scripts = scripts
        self._datasets = datasets
        self._make_keys = make_keys

    async def bring(self, run_id: RunId, plan: Plan, report: Report) -> None:
        """See ``Bringing``."""
        place = self._root / run_id
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        await self._bring_data(run_id, plan, report)
        await self._bring_scripts(place, plan)
        await asyncio.to_thread(self._write_files, place, plan)

    async def _bring_data(self, run_id: RunId, plan: Plan, report: Report) -> None:
        folder = self._root / run_id / DATA
        if not plan.fetches or folder.is_dir():
            return
        references = [fetch.reference for fetch in plan.fetches]
        found = await fetch_all(references, self._datasets, run_id, report)
        fresh = _fresh(folder)
        for number, dataset in enumerate(found):
            (fresh / str(number)).symlink_to(dataset.path)
        fresh.rename(folder)

    async def _bring_scripts(self, place: Path, plan: Plan) -> None:
        folder = place / SCRIPTS
        names = plans.scripts(plan)
        if not names or folder.is_dir():
            return
        fresh = _fresh(folder)
        for name in names:
            await self._scripts.unpack(name, str(fresh))
        await asyncio.to_thread(open_up, fresh)
        fresh.rename(folder)

    def _write_files(self, place: Path, plan: Plan) -> None:
        folder = place / FILES
        if not (plan.files or plan.needs_keys) or folder.is_dir():
            return
        fresh = _fresh(folder)
        for name, content in self.placed(RunId(place.name), plan).files.items():
            (fresh / name).write_text(content)
        if plan.needs_keys:
            _write_keys(fresh / KEYS, self._make_keys())
        fresh.chmod(0o755)  # units may run as anybody; outside of them, nobody gets past its parent
        fresh.rename(folder)

    def placed(self, run_id: RunId, plan: Plan) -> Plan:
        """See ``Bringing``."""
        if not is_needed(plan):
            return plan
        place = self._root / run_id
        links = [place / DATA / str(number) for number in range(len(plan.fetches))]
        datasets = {
            f"{DATA} {link.name}": str(link.readlink()) for link in links if link.is_symlink()
        }
        folders = {SCRIPTS: str(place / SCRIPTS), FILES: str(place / FILES)}
        filled = plans.filled(plan, folders | datasets)
        return dataclasses.replace(filled, protected=tuple(dict.fromkeys(datasets.values())))

    async def remove(self, run_id: RunId) -> None:
        """See ``Bringing``."""
        place = self._root / run_id
        if place.is_dir():
            await self._datasets.unpin(run_id)
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def leftovers(self) -> Sequence[RunId]:
        """See ``Bringing``. Whoever holds a dataset had a place before, and keeps it longer."""
        if not self._root.is_dir():
            return ()
        return tuple(sorted(RunId(folder.name) for folder in self._root.iterdir()))


def _fresh(folder: Path) -> Path:
    """A new empty folder beside the one it shall become; what an earlier attempt left is gone."""
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    return fresh


def open_up(folder: Path) -> None:
    """Let everybody read and change the code, as the original did: images run as any user. Outside
    of them, nobody but us gets past the folder above.
    """
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() or path.stat().st_mode & 0o100 else 0o666)


def _write_keys(folder: Path, keys: Mapping[str, str]) -> None:
    folder.mkdir(mode=0o755)
    for name, content in keys.items():
        path = folder / name
        path.touch(mode=0o644 if name.endswith(".pub") else 0o600)
        path.write_text(content)


class NothingBrought:
    """For installations that keep neither code nor data."""

    async def bring(self, run_id: RunId, plan: Plan, report: Report) -> None:  # noqa: ARG002
        """Raise UserError if the plan needs anything."""
        if is_needed(plan):
            raise UserError("code and data cannot be brought: none are kept here")

    def placed(self, run_id: RunId, plan: Plan) -> Plan:  # noqa: ARG002
        """The plan as it is."""
        return plan

    async def remove(self, run_id: RunId) -> None:
        """Nothing is there."""

    async def leftovers(self) -> Sequence[RunId]:
        """None."""
        return ()
