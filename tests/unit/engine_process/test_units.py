"""What is particular to the process engine when a run has several units."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process import addressing
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.engine.process.guardian import files
from anubis.domain import blanks, errors, plan
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits, Plan, Unit
from anubis.testing.contracts.engine import a_new_run, a_plan, end, output, run, watch

HOUR = timedelta(hours=1)


def a_shell(name: str, text: str, *words: str, **fields: object) -> Unit:
    fields = {"environment": {}, **fields}
    return Unit(name=name, command=("sh", "-c", text, *words), **fields)  # type: ignore[arg-type] # any field


def an_ensemble(*units: Unit, limits: Limits | None = None) -> Plan:
    return Plan(units=units, deciding=units[-1].name, limits=limits or Limits())


def test_the_guardians_know_the_name_of_the_only_unit() -> None:
    """They import nothing of Anubis above them, and so spell it themselves."""
    assert files.SOLE == plan.SOLE


def test_names_of_directories_can_be_read_back() -> None:
    for run_id, unit in (("r-1", "benchmark"), ("r-1", "server-0")):
        assert files.owner(f"/runs/{files.name(run_id, unit)}") == (run_id, unit)


async def test_a_run_of_one_unit_leaves_only_what_it_left_before(
    engine: ProcessEngine, directory: Path
) -> None:
    """A home of the version before this one has the same names."""
    run_id = a_new_run()
    await engine.start(run_id, a_plan("true"))
    await watch(engine, run_id)
    assert [path.name for path in directory.iterdir()] == [run_id]
    kept = {path.name for path in (directory / run_id).iterdir()}
    assert kept == {"lock", "journal", "status.json", "work"}


async def test_blanks_are_filled_in_with_this_machine_and_its_ports(
    engine: ProcessEngine, directory: Path
) -> None:
    run_id = a_new_run()
    server = a_shell("server", "true", ports=(8080, 9090))
    text = 'echo "$0 $URL"'
    url = f"http://{blanks.host('server')}:{blanks.port('server', 9090)}/"
    client = a_shell("client", text, blanks.port("server", 8080), environment={"URL": url})
    ensemble = an_ensemble(server, client)
    for unit in ("server", "client"):
        await engine.start(run_id, ensemble, unit)
    said = output(await watch(engine, run_id, "client")).decode().split()
    ports = json.loads((directory / run_id / addressing.FILE).read_text())
    assert said == [
        str(ports["port server 8080"]),
        f"http://127.0.0.1:{ports['port server 9090']}/",
    ]


async def test_programs_know_their_run_and_their_unit(engine: ProcessEngine) -> None:
    run_id = a_new_run()
    unit = a_shell("worker-1", 'echo "$ANUBIS_RUN_ID $ANUBIS_UNIT"')
    await engine.start(run_id, an_ensemble(unit), "worker-1")
    seen = await watch(engine, run_id, "worker-1")
    assert output(seen).decode() == f"{run_id} worker-1\n"


async def test_a_unit_others_wait_for_may_run_longer_than_the_one_that_decides(
    engine: ProcessEngine, directory: Path
) -> None:
    """It begins earlier, by all the waiting, and must not be stopped before."""
    limits = Limits(running=10 * HOUR, readiness=HOUR, grace=HOUR / 2)
    ensemble = an_ensemble(
        a_shell("scheduler", "true"),
        a_shell("server", "true", after=("scheduler",)),
        a_shell("worker-1", "true", after=("server",)),
        a_shell("worker-0", "true", after=("server",)),
        limits=limits,
    )
    run_id = a_new_run()
    for unit in ensemble.units:
        await engine.start(run_id, ensemble, unit.name)
    live = {unit.name: files.live(f"{directory}/{run_id}.{unit.name}") for unit in ensemble.units}
    specs = {name: files.read_json(place, files.SPEC) or {} for name, place in live.items()}
    assert specs["worker-0"]["running_seconds"] == (10 * HOUR).total_seconds()
    assert specs["scheduler"]["running_seconds"] == (12.5 * HOUR).total_seconds()


async def test_a_unit_that_was_specified_but_never_asked_for_was_not_started(
    engine: ProcessEngine, directory: Path
) -> None:
    """The service died in between: starting it again is right, and runs it once."""
    run_id = a_new_run()
    ensemble = an_ensemble(a_shell("server", "echo once"))
    await engine.start(run_id, ensemble, "server")
    await watch(engine, run_id, "server")
    for name in ("journal", "status.json", "stdout"):
        (directory / f"{run_id}.server" / name).unlink()
    async with ProcessEngine(directory, revive=None) as later:
        assert await later.started(run_id) == frozenset()
        await later.start(run_id, ensemble, "server")
        assert await later.started(run_id) == {"server"}
        assert output(await watch(later, run_id, "server")) == b"once\n"


async def test_ports_of_a_run_whose_units_never_started_can_be_removed(
    engine: ProcessEngine, directory: Path
) -> None:
    run_id = a_new_run()
    ensemble = an_ensemble(a_shell("server", "true", ports=(8080,)))
    engine._ports.allot(run_id, ensemble)
    assert await engine.started(run_id) == frozenset()
    await engine.stop(run_id, grace=timedelta(), cause=EndCause.CANCELED)
    assert list(await engine.leftovers()) == [run_id]
    await engine.remove(run_id)
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("name", ["Server", "a.b", "../x", ""])
async def test_a_unit_with_another_name_is_refused(engine: ProcessEngine, name: str) -> None:
    run_id = a_new_run()
    with pytest.raises(errors.NotPossible):
        await engine.start(run_id, an_ensemble(a_shell(name, "true")), name)
    assert list(await engine.leftovers()) == []


async def test_removing_a_run_forgets_what_its_units_had_in_memory(
    engine: ProcessEngine, directory: Path
) -> None:
    run_id = a_new_run()
    ensemble = an_ensemble(a_shell("server", "true"))
    await engine.start(run_id, ensemble, "server")
    await watch(engine, run_id, "server")
    place = directory / f"{run_id}.server"
    live = Path(files.live(str(place)))
    async with ProcessEngine(directory, revive=None):
        assert live.is_dir()
    await engine.remove(run_id)
    assert not live.exists()
    assert end(await run(engine, a_plan("true"))).exit_code == 0
