"""``anubis dataset``: what the cache holds, and looking after it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from anubis.bootstrap.application import Application
from anubis.domain import dataset, size
from anubis.domain.dataset import Dataset, DatasetKey, Reference
from anubis.domain.errors import DatasetNotFound, NotPossible
from anubis.entrypoints.cli import exits, options, session, terminal
from anubis.entrypoints.cli.following import Interrupts
from anubis.entrypoints.cli.rendering import datasets as rendering
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.transfers import TransferView
from anubis.stages.presentation import dataset_shapes, shapes

NOT_ALL_WELL = 1
"""Exit code: a dataset was damaged, or one that should go had to stay."""


class Size(click.ParamType[int]):
    """``500MB``, ``10GiB``, ``4096``."""

    name = "size"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read it."""
        found = value if isinstance(value, int) else size.read(value)
        if found is None:
            self.fail(f"found {value!r}, expected a size such as 500MB; {size.UNITS}", param, ctx)
        return found


_KEYS = click.argument("keys", nargs=-1, metavar="[KEY]...")


@click.group("dataset", context_settings={"help_option_names": ["-h", "--help"]})
def dataset_command() -> None:
    """List, add, verify or evict the datasets of the cache.

    Runs fetch their data into the cache by themselves and share it. KEY names a dataset: by its
    key, or by any unique beginning of it. Where a service is registered, its cache is meant.
    """


@dataset_command.command("list")
@click.option("--keys", is_flag=True, help="Print nothing but keys.")
@options.as_json
@click.pass_obj
def list_command(opener: session.Opener | None, keys: bool, as_json: bool) -> None:
    """List datasets, last used first."""

    async def work(application: Application) -> None:
        found = await application.datasets.all()
        if as_json:
            terminal.echo(shapes.line({"datasets": [_shape(one) for one in found]}))
        elif keys:
            terminal.echo("".join(f"{one.key}\n" for one in found))
        else:
            now, width = application.clock.now(), terminal.width()
            terminal.echo(rendering.datasets_table(found, now, width=width))

    session.call(opener, work)


@dataset_command.command("add")
@click.argument("uri", metavar="URI")
@click.option("--checksum", default="", metavar="SUM", help="Expect sha256:…, md5:… or the like.")
@click.option("--unpack", is_flag=True, help="It is an archive; keep what is in it.")
@options.as_json
@click.pass_obj
def add_command(
    opener: session.Opener | None, uri: str, checksum: str, unpack: bool, as_json: bool
) -> int:
    """Fetch a dataset now, and print its key.

    URI and options are those of data.sources in a descriptor: a run that names the same finds it
    here. A path is one of the machine that has the cache. Ctrl-C stops the transfer; it goes on
    from there when the same is asked for again.
    """
    dataset.refuse_secrets(uri)
    reference = Reference(uri=_located(uri), checksum=dataset.checksum(checksum), unpack=unpack)

    async def work(application: Application) -> int:
        found = await _fetched(application, reference)
        if found is None:
            terminal.say("stopped; what has come is kept for the next time")
            return exits.INTERRUPTED
        if as_json:
            terminal.echo(shapes.line(_shape(found)))
        else:
            terminal.say(f"{rendering.named(found)}: {_measured(found)}")
            terminal.echo(f"{found.key}\n")
        return 0

    return session.call(opener, work)


async def _fetched(application: Application, reference: Reference) -> Dataset | None:
    """The dataset; None if somebody pressed Ctrl-C meanwhile."""
    async with Interrupts() as interrupts:
        with TransferView(application.clock) as view:
            task = asyncio.ensure_future(application.datasets.add(reference, report=view.show))
            await asyncio.wait({task, interrupts.next}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return None


def _located(uri: str) -> str:
    """As a descriptor here would mean it, so that a run finds it: a relative path starts in this
    folder, and all else stays as it is.
    """
    uri = uri.strip()
    if not uri or not _is_text(uri):
        raise click.UsageError(f"found {uri!r}, expected the path or URL of a dataset")
    if dataset.scheme_of(uri) or uri.startswith("/"):
        return uri
    return os.path.normpath(Path(uri).absolute())


def _is_text(uri: str) -> bool:
    """Whether it can be stored: bytes that are no UTF-8 come from a terminal as surrogates."""
    return not any("\ud800" <= sign <= "\udfff" for sign in uri)


@dataset_command.command("verify")
@_KEYS
@click.option("--all", "everything", is_flag=True, help="Verify all datasets.")
@options.as_json
@click.pass_obj
def verify_command(
    opener: session.Opener | None, keys: Sequence[str], everything: bool, as_json: bool
) -> int:
    """Read datasets again and compare them with what was fetched.

    One that is damaged is removed, and fetched again when a run needs it. Exit code 1 if there was
    one.
    """
    if bool(keys) == everything:
        raise click.UsageError("expected either KEY... or --all")

    async def work(application: Application) -> int:
        verified = list[tuple[DatasetKey, bool]]()
        for found in await _chosen(application, keys):
            try:
                is_sound = await application.datasets.verify(found.key)
            except DatasetNotFound:  # evicted meanwhile
                continue
            verified.append((found.key, is_sound))
            if not as_json:
                terminal.echo(f"{found.key} {'ok' if is_sound else 'damaged: removed'}\n")
                terminal.flush()
        if as_json:
            told = [{"key": key, "sound": is_sound} for key, is_sound in verified]
            terminal.echo(shapes.line({"verified": told}))
        return 0 if all(is_sound for _, is_sound in verified) else NOT_ALL_WELL

    return session.call(opener, work)


@dataset_command.command("evict")
@_KEYS
@click.option("--all", "everything", is_flag=True, help="Evict all datasets.")
@click.option("--unused-for", type=click.IntRange(0, 36_500), metavar="DAYS", help="Those so old.")
@click.option("--to", "most", type=Size(), metavar="SIZE", help="Oldest use first, down to SIZE.")
@options.as_json
@click.pass_obj
def evict_command(
    opener: session.Opener | None,
    keys: Sequence[str],
    everything: bool,
    unused_for: int | None,
    most: int | None,
    as_json: bool,
) -> int:
    """Remove datasets from the cache.

    They are fetched again when a run needs them. One that a run uses now is named and kept, with
    exit code 1. SIZE is for all that stay: 500MB, 10GiB.
    """
    wishes = [bool(keys), everything, unused_for is not None, most is not None]
    if sum(wishes) != 1:
        raise click.UsageError("expected one of: KEY..., --all, --unused-for, --to")

    async def work(application: Application) -> int:
        chosen = await _chosen(application, keys)
        if unused_for is not None:
            chosen = _unused(application, chosen, timedelta(days=unused_for))
        eviction = Eviction(application, as_json=as_json)
        await eviction.evict(chosen, most=most)
        return eviction.told()

    return session.call(opener, work)


class Eviction:
    """Datasets that go, and those that must stay."""

    def __init__(self, application: Application, *, as_json: bool) -> None:
        self._application = application
        self._as_json = as_json
        self._freed: list[tuple[DatasetKey, int]] = []
        self._kept: list[Dataset] = []

    async def evict(self, chosen: Sequence[Dataset], *, most: int | None) -> None:
        """Remove these, least recently used first; if given, only until the rest takes so much."""
        rest = {one.key: one for one in chosen}
        for found in reversed(chosen):
            if most is not None and rendering.taken(rest.values()) <= most:
                return
            try:
                freed = await self._application.datasets.evict(found.key)
            except NotPossible as error:
                self._kept.append(found)
                terminal.say(f"{rendering.named(found)} stays: {error}")
            except DatasetNotFound:  # somebody else did
                del rest[found.key]
            else:
                self._freed.append((found.key, freed))
                del rest[found.key]
                if not self._as_json:
                    terminal.echo(f"{found.key} evicted, {text.size(freed)} freed\n")

    def told(self) -> int:
        """The exit code, once all is told."""
        if self._as_json:
            evicted = [{"key": key, "freed_bytes": freed} for key, freed in self._freed]
            kept = [_shape(one) for one in self._kept]
            terminal.echo(shapes.line({"evicted": evicted, "kept": kept}))
        elif not self._freed and not self._kept:
            terminal.say("nothing had to go")
        return NOT_ALL_WELL if self._kept else 0


def _unused(
    application: Application, found: Sequence[Dataset], span: timedelta
) -> Sequence[Dataset]:
    limit = application.clock.now() - span
    return [one for one in found if one.used_at <= limit]


async def _chosen(application: Application, keys: Sequence[str]) -> Sequence[Dataset]:
    """Those meant, each once, before anything is done; all without keys. Last used first."""
    if not keys:
        return await application.datasets.all()
    found = [await application.datasets.get(key) for key in keys]
    return sorted(
        {one.key: one for one in found}.values(), key=lambda one: one.used_at, reverse=True
    )


def _measured(found: Dataset) -> str:
    noun = "file" if found.files == 1 else "files"
    files = f", {found.files:,} {noun}" if found.kind is dataset.DatasetKind.DIRECTORY else ""
    return f"{text.size(found.size_bytes)}{files}"


def _shape(found: Dataset) -> dataset_shapes.DatasetShape:
    return dataset_shapes.dataset_shape(found, is_here=True)
