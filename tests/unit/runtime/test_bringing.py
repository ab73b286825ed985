"""Code, data and files are there when a program starts, and gone when its run is."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from anubis.adapters.dataset_cache.memory import MemoryDatasetCache
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.domain import blanks
from anubis.domain import plan as plans
from anubis.domain.dataset import Progress
from anubis.domain.descriptor import Descriptor, Info, MachineLearning, Script
from anubis.domain.errors import DatasetInvalid, UserError
from anubis.domain.plan import Fetch, Limits, Plan, Unit
from anubis.domain.run import Run, RunState, WorkerId
from anubis.ports.dataset_source import Item, Listing
from anubis.ports.log_store import LogQuery
from anubis.runtime.bringing import Bringer, NothingBrought
from anubis.runtime.carrying import Carrier, Workshop
from anubis.stages.planning.planning import Context, plan
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock
from anubis.testing.contracts.script_store import Archive, a_file, an_archive

WORKER = WorkerId("w")


def planned(archive: str, code: str) -> Plan:
    """What becomes of a descriptor in script mode, written down and read again."""
    descriptor = Descriptor(
        spec_version="0.1.0",
        info=Info(description="d"),
        ml=MachineLearning(benchmark_code=code, script=Script(script=archive)),
    )
    context = Context(directory="", environment={"PATH": "/usr/bin:/bin"}, python="python3")
    capabilities = ProcessEngine(Path("unused"), revive=None).capabilities
    return plans.from_json(plans.to_json(plan(descriptor, capabilities, context)))


class Texts:
    """A source of what a test says; what is None never comes."""

    schemes = frozenset({"file"})

    def __init__(self, **texts: bytes | None) -> None:
        self._texts = {f"file:/{name}": text for name, text in texts.items()}

    async def list(self, uri: str) -> Listing:
        if uri not in self._texts:
            raise DatasetInvalid(f"{uri} is not there")
        name = uri.rpartition("/")[2]
        item = Item(name=name, address=uri, size_bytes=None, version="1")
        return Listing(items=(item,), is_directory=False, has_ranges=False)

    async def read(self, item: Item, start: int, end: int | None) -> AsyncIterator[bytes]:
        text = self._texts[item.address]
        if text is None:
            await asyncio.Event().wait()
        yield text or b""


def a_cache(**texts: bytes | None) -> MemoryDatasetCache:
    return MemoryDatasetCache({"file": Texts(**texts)}, ManualClock())


def a_plan_that_fetches(*names: str) -> Plan:
    words = ("echo", *(blanks.data(number) for number in range(len(names))))
    unit = Unit(name="benchmark", command=words, environment={"PATH": "/usr/bin:/bin"})
    fetches = tuple(Fetch(uri=f"file:/{name}") for name in names)
    return Plan(units=(unit,), deciding=unit.name, limits=Limits(), fetches=fetches)


def a_bringer(
    root: Path, scripts: MemoryScriptStore, datasets: MemoryDatasetCache | None = None
) -> Bringer:
    def keys() -> Mapping[str, str]:
        return {"id": "secret", "id.pub": "public"}

    return Bringer(root, scripts, datasets or a_cache(), keys)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """A workshop with the process engine, and what it reads and writes."""

    shop: Workshop
    scripts: MemoryScriptStore
    folder: Path

    async def carry(self, plan: Plan) -> Run:
        """Submit a run of this plan and bring it to its end."""
        shop = self.shop
        await shop.store.add(builders.a_run(), builders.a_document(), plans.to_json(plan), "new")
        [run] = await shop.store.lease(
            WORKER, now=NOON, duration=builders.HOUR, states=[RunState.SUBMITTED], limit=1
        )
        carrier = Carrier(run, shop)
        async with asyncio.timeout(30):
            await carrier.carry()
        return carrier.run

    async def output(self, run: Run) -> bytes:
        lines = self.shop.logs.lines(run.id, LogQuery())
        return b"".join([line.text async for line in lines])


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = ManualClock()
    scripts = MemoryScriptStore(clock)
    async with contextlib.AsyncExitStack() as stack:
        engine = await stack.enter_async_context(ProcessEngine(tmp_path / "runs", revive=None))
        shop = Workshop(
            worker=WORKER,
            store=MemoryRunStore(),
            engines={"process": engine},
            logs=MemoryLogStore(),
            series=MemorySeriesStore(),
            clock=clock,
            bringing=a_bringer(tmp_path / "places", scripts, a_cache(here=b"content", never=None)),
        )
        yield Bench(shop=shop, scripts=scripts, folder=tmp_path / "places")


async def test_a_program_finds_its_code_by_the_variable_and_in_its_command(bench: Bench) -> None:
    archive = an_archive(a_file("src/hello.sh", b'echo "hello from $BAI_SCRIPTS_PATH"\n'))
    await bench.scripts.put(archive.name, archive.parts())

    run = await bench.carry(planned(archive.name, "sh $(BAI_SCRIPTS_PATH)/src/hello.sh"))

    assert run.state is RunState.SUCCEEDED, run.outcome
    folder = bench.folder / run.id / "scripts"
    assert await bench.output(run) == f"hello from {folder}\n".encode()
    assert not folder.exists()


async def test_a_run_without_its_archive_ends_and_names_it(bench: Bench) -> None:
    name = "0" * 40 + ".tar"

    run = await bench.carry(planned(name, "true"))

    assert run.state is RunState.ERROR
    assert run.outcome is not None
    assert run.outcome.reason == (
        f"script archive {name} is not here: it was never uploaded, or was removed after long "
        "disuse; upload it first"
    )
    assert not (bench.folder / run.id).exists()


async def test_an_archive_with_a_name_that_is_none_is_named_too(bench: Bench) -> None:
    run = await bench.carry(planned("../../etc.tar", "true"))

    assert run.state is RunState.ERROR
    assert run.outcome is not None
    assert "'../../etc.tar'" in run.outcome.reason


async def test_half_of_an_earlier_attempt_is_replaced_and_what_is_whole_is_left(
    tmp_path: Path,
) -> None:
    store, archive = MemoryScriptStore(ManualClock()), an_archive(a_file("a"))
    await store.put(archive.name, archive.parts())
    bringer, run_id = a_bringer(tmp_path, store), builders.a_run_id()
    (tmp_path / run_id / "scripts.new").mkdir(parents=True)
    (tmp_path / run_id / "scripts.new" / "half").touch()

    await bringer.bring(run_id, planned(archive.name, "true"), ignored)

    place = tmp_path / run_id
    assert [path.name for path in place.iterdir()] == ["scripts"]
    assert [path.name for path in (place / "scripts").iterdir()] == ["a"]
    (place / "scripts" / "a").write_text("changed by the program")
    await bringer.bring(run_id, planned(archive.name, "true"), ignored)
    assert (place / "scripts" / "a").read_text() == "changed by the program"


def ignored(progress: Progress) -> None:
    """Nobody wants to know."""


async def test_datasets_are_linked_and_pinned_until_the_place_is_removed(tmp_path: Path) -> None:
    datasets = a_cache(a=b"content", b=b"other")
    bringer = a_bringer(tmp_path, MemoryScriptStore(ManualClock()), datasets)
    wanted = a_plan_that_fetches("a", "b")
    run_id = builders.a_run_id()

    await bringer.bring(run_id, wanted, ignored)

    paths = [(await datasets.get(fetch.reference.key)).path for fetch in wanted.fetches]
    assert bringer.placed(run_id, wanted).units[0].command == ("echo", *paths)
    assert list(await datasets.pins()) == [run_id]
    assert list(await bringer.leftovers()) == [run_id]
    await bringer.remove(run_id)
    await bringer.remove(run_id)
    assert not await datasets.pins()
    assert not await bringer.leftovers()


async def test_keys_are_made_once_and_only_their_owner_reads_the_secret_ones(
    tmp_path: Path,
) -> None:
    bringer = a_bringer(tmp_path, MemoryScriptStore(ManualClock()))
    unit = Unit(name="benchmark", command=("true",), environment={})
    wanted = Plan(
        units=(unit,),
        deciding=unit.name,
        limits=Limits(),
        files={"hostfile": f"see {blanks.FILES}/keys\n"},
        needs_keys=True,
    )
    run_id = builders.a_run_id()

    await bringer.bring(run_id, wanted, ignored)

    files = tmp_path / run_id / "files"
    assert (files / "hostfile").read_text() == f"see {files}/keys\n"
    assert (files / "keys" / "id").stat().st_mode & 0o777 == 0o600
    assert (files / "keys" / "id.pub").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / run_id).stat().st_mode & 0o777 == 0o700


async def test_a_run_is_fetching_while_its_data_comes_and_its_program_finds_it(
    bench: Bench,
) -> None:
    run = await bench.carry(a_plan_that_fetches("here"))

    assert run.state is RunState.SUCCEEDED, run.outcome
    assert b"/here" in await bench.output(run)
    events = await bench.shop.store.events(run.id)
    moved = [event.data["to"] for event in events if "to" in event.data]
    assert moved[1:5] == ["FETCHING", "QUEUED", "STARTING", "RUNNING"]
    phases = [event.data["phase"] for event in events if event.data.get("fetch") == "file:/here"]
    assert phases == ["begun", "done"]
    assert not list(bench.folder.iterdir())


async def test_a_run_whose_data_is_not_there_has_failed_and_names_it(bench: Bench) -> None:
    run = await bench.carry(a_plan_that_fetches("here", "gone"))

    assert run.state is RunState.FAILED
    assert run.outcome is not None
    assert run.outcome.reason == "file:/gone is not there"
    events = await bench.shop.store.events(run.id)
    failed = [event.data["fetch"] for event in events if event.data.get("phase") == "failed"]
    assert failed == ["file:/gone"]
    assert not list(bench.folder.iterdir())


async def test_canceling_stops_a_transfer_and_leaves_nothing(bench: Bench) -> None:
    shop, plan = bench.shop, a_plan_that_fetches("never")
    await shop.store.add(builders.a_run(), builders.a_document(), plans.to_json(plan), "new")
    [run] = await shop.store.lease(
        WORKER, now=NOON, duration=builders.HOUR, states=[RunState.SUBMITTED], limit=1
    )
    carrier = Carrier(run, shop)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(carrier.carry())
        while carrier.run.state is not RunState.FETCHING:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await carrier.stop()

    run = await shop.store.get(run.id)
    assert run.state is RunState.CANCELED
    assert run.outcome is not None
    assert run.outcome.reason == "canceled while what it needs was being brought"
    assert not list(bench.folder.iterdir())


async def test_a_run_that_must_wait_fetches_when_it_is_its_turn(bench: Bench) -> None:
    shop, plan = bench.shop, a_plan_that_fetches("here")
    await shop.store.add(builders.a_run(), builders.a_document(), plans.to_json(plan), "new")
    for states in ([RunState.SUBMITTED], [RunState.QUEUED]):
        [run] = await shop.store.lease(
            WORKER, now=NOON, duration=builders.HOUR, states=states, limit=1
        )
        carrier = Carrier(run, shop)
        await (carrier.enqueue() if run.state is RunState.SUBMITTED else carrier.carry())

    events = await shop.store.events(run.id)
    moved = [event.data["to"] for event in events if "to" in event.data]
    assert moved[1:5] == ["QUEUED", "FETCHING", "QUEUED", "STARTING"]
    assert carrier.run.state is RunState.SUCCEEDED


async def test_without_a_store_of_scripts_a_run_that_needs_one_is_told_so() -> None:
    archive = Archive(b"")

    with pytest.raises(UserError, match="none are kept here"):
        await NothingBrought().bring(builders.a_run_id(), planned(archive.name, "true"), ignored)


def test_what_a_user_wrote_to_be_left_alone_is_left_alone() -> None:
    bare = planned("0" * 40 + ".tar", "echo $$(BAI_SCRIPTS_PATH)")
    placed = plans.filled(bare, {"scripts": "/there"})

    [unit] = placed.units
    assert unit.command == ("echo", "$(BAI_SCRIPTS_PATH)")
    assert unit.environment["BAI_SCRIPTS_PATH"] == "/there"
