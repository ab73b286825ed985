"""Containers get what the plan says, and all that happens to them is told apart."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest
from tests import docker_images
from tests.docker_engines import left, opened

from anubis.adapters.engine.docker.engine import DockerEngine
from anubis.adapters.engine.process import removing
from anubis.domain import blanks, errors
from anubis.domain.dataset import Progress
from anubis.domain.observation import EmittedChunk, EndCause, ResourceReading, Stream, UnitEnded
from anubis.domain.plan import Limits, Mount, Plan, Resources, Unit
from anubis.testing.contracts.engine import a_new_run, a_plan, end, output, run, watch

MIB = 1024**2


def shell(image: str, text: str, limits: Limits | None = None, **fields: object) -> Plan:
    """A shell's program in a container."""
    return a_plan("sh", "-c", text, image=image, limits=limits, **fields)


@pytest.mark.parametrize(
    ("text", "code", "signal"),
    [
        ("exit 0", 0, None),
        ("exit 7", 7, None),
        ("exit 127", 127, None),
        ("kill -KILL $$", None, 9),
        ("kill -SEGV $$", None, 11),
        ("exit 200", 200, None),
    ],
)
async def test_an_exit_code_and_a_signal_are_told_apart(
    engine: DockerEngine, image: str, text: str, code: int | None, signal: int | None
) -> None:
    ended = end(await run(engine, shell(image, text)))
    assert (ended.cause, ended.exit_code, ended.signal) == (EndCause.EXITED, code, signal)


async def test_the_very_bytes_are_kept_and_streams_are_told_apart(
    engine: DockerEngine, image: str
) -> None:
    text = (
        r"printf 'a\377\200b'; printf 'x\0y\n\n\r\n'; head -c 40000 /dev/zero | tr '\0' z;"
        r" printf 'no newline'; printf 'err\376' >&2"
    )
    seen = await run(engine, shell(image, text))
    assert output(seen) == b"a\xff\x80bx\0y\n\n\r\n" + b"z" * 40000 + b"no newline"
    assert output(seen, Stream.STDERR) == b"err\xfe"


async def test_a_program_that_wants_too_much_memory_is_told_as_such(
    engine: DockerEngine, image: str
) -> None:
    resources = Resources(memory_bytes=32 * MIB, extended_shm=False)
    text = "x=0123456789abcdef; while :; do x=$x$x; done"
    ended = end(await run(engine, shell(image, text, resources=resources)))
    assert (ended.cause, ended.signal) == (EndCause.OUT_OF_MEMORY, 9)


async def test_limits_are_seen_from_inside(engine: DockerEngine, image: str) -> None:
    resources = Resources(
        cpus=0.5, memory_bytes=64 * MIB, ulimits={"nofile": 321, "core": 0}, extended_shm=True
    )
    text = (
        "ulimit -n; ulimit -c; df -k /dev/shm | tail -1; grep Cpus_allowed_list /proc/self/status"
    )
    plan = shell(image, text, resources=resources, cpu_affinity=(0,))
    told = output(await run(engine, plan)).decode().splitlines()
    assert told[:2] == ["321", "0"]
    assert told[2].split()[1] == str(64 * 1024)
    assert told[3].split()[1] == "0"


async def test_shared_memory_is_small_unless_the_descriptor_wants_more(
    engine: DockerEngine, image: str
) -> None:
    plan = shell(image, "df -k /dev/shm | tail -1", resources=Resources(extended_shm=False))
    assert output(await run(engine, plan)).split()[1] == b"65536"


async def test_what_is_lent_cannot_be_changed_and_what_is_given_is_a_copy(
    engine: DockerEngine, image: str, tmp_path: Path
) -> None:
    """Root in a container must leave nothing on the machine that its owner cannot remove."""
    (tmp_path / "given").mkdir(mode=0o700)
    (tmp_path / "given" / "file").write_text("hello\n")
    (tmp_path / "given" / "tool").touch(mode=0o777)
    mounts = (
        Mount(source=str(tmp_path / "given"), target="/lent"),
        Mount(source=str(tmp_path / "given"), target="/bai/own", read_only=False),
    )
    text = (
        "cat /lent/file; touch /lent/new; mkdir /bai/own/made && cat /bai/own/file; ls -l /bai/own"
    )
    seen = await run(engine, shell(image, text, mounts=mounts))
    assert output(seen).startswith(b"hello\nhello\n")
    assert b"-rwx" in output(seen)
    assert b"Read-only" in output(seen, Stream.STDERR)
    assert sorted(path.name for path in (tmp_path / "given").iterdir()) == ["file", "tool"]


async def test_what_is_to_be_mounted_must_be_there(
    engine: DockerEngine, image: str, tmp_path: Path
) -> None:
    mounts = (Mount(source=str(tmp_path / "missing"), target="/given"),)
    ended = end(await run(engine, shell(image, "true", mounts=mounts)))
    assert ended.cause is EndCause.NOT_STARTED
    assert "missing" in ended.message


async def test_the_environment_is_the_descriptors_and_not_the_submitters(
    engine: DockerEngine, image: str
) -> None:
    plan = shell(image, "env", environment={"MINE": "yes"}, inherited={"SECRET": "no"})
    told = output(await run(engine, plan)).decode()
    assert "MINE=yes" in told
    assert "SECRET" not in told
    assert "BENCHMARK_AI_FIFO_FILEPATH=/tmp/benchmark-ai/fifo" in told


async def test_an_image_does_what_it_does_by_itself_where_no_command_is_given(
    engine: DockerEngine, image: str
) -> None:
    plan = a_plan(image=image, arguments=("echo", "as arguments"))
    assert output(await run(engine, plan)) == b"as arguments\n"


async def test_readings_tell_what_a_container_used(engine: DockerEngine, image: str) -> None:
    text = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 1.2"
    seen = await run(engine, shell(image, text))
    readings = [one for one in seen if isinstance(one, ResourceReading)]
    assert len(readings) >= 2
    assert readings[-1].cpu_seconds > 0
    assert end(seen).cpu_seconds > 0
    assert {one.processes for one in readings} <= {1, 2}
    assert 0 < readings[0].memory_bytes < 64 * MIB


async def test_a_run_that_lasts_too_long_is_stopped(engine: DockerEngine, image: str) -> None:
    limits = Limits(running=timedelta(seconds=0.5))
    ended = end(await run(engine, shell(image, "exec sleep 600", limits)))
    assert (ended.cause, ended.signal) == (EndCause.TIMED_OUT, 15)


async def test_a_run_that_writes_too_much_is_stopped(engine: DockerEngine, image: str) -> None:
    seen = await run(engine, shell(image, "yes", Limits(output_bytes=100_000)))
    assert end(seen).cause is EndCause.OUTPUT_LIMIT
    assert len(output(seen)) == 100_000


async def test_units_find_each_other_by_name_and_only_within_their_run(
    engine: DockerEngine, image: str
) -> None:
    server = Unit(
        name="server",
        command=("sh", "-c", "echo hello from $(hostname) | nc -l -p 5000"),
        environment={},
        image=image,
        ports=(5000,),
    )
    text = f"until nc {blanks.host('server')} {blanks.port('server', 5000)}; do sleep 0.1; done"
    client = dataclasses.replace(server, name="client", command=("sh", "-c", text), ports=())
    alone = dataclasses.replace(server, command=("nc", "-w", "1", "server", "5000"))
    plan = Plan(units=(server, client), deciding="client", limits=Limits())
    first, second = a_new_run(), a_new_run()
    await engine.start(first, plan, "server")
    await engine.start(
        second, Plan(units=(alone, client), deciding="client", limits=Limits()), "server"
    )
    await engine.start(first, plan, "client")
    assert output([one async for one in engine.observe(first, "client")]) == b"hello from server\n"
    lonely = [one async for one in engine.observe(second, "server")]
    assert isinstance(lonely[-1], UnitEnded)
    assert lonely[-1].exit_code


async def test_the_same_image_is_the_same_in_the_fingerprint(
    engine: DockerEngine, image: str
) -> None:
    told = await engine.fingerprint(shell(image, "true"))
    known = docker_images.docker("image", "inspect", "--format", "{{.Id}}", image).stdout.strip()
    assert known in told.machine
    assert '"storage_driver"' in told.machine


async def test_a_user_of_the_image_may_emit(engine: DockerEngine, image: str) -> None:
    text = """su -s /bin/sh nobody -c 'echo "{}" > $BENCHMARK_AI_FIFO_FILEPATH'"""
    text = f"echo nobody:x:65534:65534::/:/bin/sh >> /etc/passwd; {text}"
    seen = await run(engine, shell(image, text))
    assert b"".join(one.data for one in seen if isinstance(one, EmittedChunk)) == b"{}\n"


async def test_niceness_is_refused_in_words(engine: DockerEngine, image: str) -> None:
    ended = end(await run(engine, shell(image, "true", niceness=5)))
    assert ended.cause is EndCause.NOT_STARTED
    assert "niceness" in ended.message


async def test_an_image_that_may_not_be_pulled_is_missing(engine: DockerEngine) -> None:
    plan = shell("anubis-test/no-such-image:1", "true")
    with pytest.raises(errors.ImageUnavailable, match=r"no-such-image.*never"):
        await engine.prepare(plan, lambda _: None)
    ended = end(await run(engine, plan))
    assert ended.cause is EndCause.NOT_STARTED
    assert "No such image" in ended.message


async def test_a_registry_that_does_not_answer_is_quoted(tmp_path: Path, image: str) -> None:
    progress: list[Progress] = []
    async with opened(tmp_path, pull="missing") as engine:
        await engine.prepare(shell(image, "true"), progress.append)  # it is here
        assert progress == []
        with pytest.raises(errors.ImageUnavailable, match=r"127\.0\.0\.1:1.*refused"):
            await engine.prepare(shell("127.0.0.1:1/nobody:1", "true"), progress.append)
    assert progress == [Progress(uri="127.0.0.1:1/nobody:1", done_bytes=0, total_bytes=None)]


async def test_a_daemon_that_does_not_answer_is_named(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/none.sock"
    async with DockerEngine(tmp_path / "docker", address, pull="never", revive=None) as engine:
        with pytest.raises(errors.EngineUnavailable, match=r"none\.sock.*ANUBIS_DOCKER_HOST"):
            await engine.start(a_new_run(), shell("any", "true"))
        for place in (tmp_path / "docker").iterdir():  # in memory too
            removing.delete(place)


async def test_two_homes_do_not_touch_each_others_things(
    engine: DockerEngine, image: str, tmp_path: Path
) -> None:
    run_id = a_new_run()
    async with opened(tmp_path / "other") as other:
        await engine.start(run_id, shell(image, "echo mine"))
        await other.start(run_id, shell(image, "echo other"))
        assert output(await watch(engine, run_id)) == b"mine\n"
        assert output(await watch(other, run_id)) == b"other\n"
        await other.remove(run_id)
        assert list(await other.leftovers()) == []
        assert left(tmp_path / "other") == ""
    assert list(await engine.leftovers()) == [run_id]


async def test_a_container_that_somebody_removes_is_lost(engine: DockerEngine, image: str) -> None:
    run_id = a_new_run()
    await engine.start(run_id, shell(image, "echo here; exec sleep 600"))
    async for _ in engine.observe(run_id):
        break
    found = docker_images.docker("ps", "--quiet", f"--filter=label=anubis.run={run_id}").stdout
    docker_images.docker("rm", "--force", *found.split())
    ended = end(await watch(engine, run_id))
    assert ended.cause is EndCause.LOST
    assert "removed" in ended.message


@pytest.mark.parametrize("name", ["x/../../containers/json?all=1#", "https://host/image"])
async def test_what_cannot_be_the_name_of_an_image_is_asked_of_nobody(
    engine: DockerEngine, name: str
) -> None:
    """It would lead to other parts of the daemon."""
    plan = shell(name, "true")
    with pytest.raises(errors.ImageUnavailable):
        await engine.prepare(plan, lambda _: None)
    assert '"id"' not in (await engine.fingerprint(plan)).machine


async def test_a_full_disk_ends_the_run(
    engine: DockerEngine, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container is not left running with nobody to follow it."""
    run_id = a_new_run()
    directory = tmp_path / "docker" / run_id
    directory.mkdir(parents=True)
    (directory / "stdout").symlink_to("/dev/full")
    await engine.start(run_id, shell(image, "echo here; exec sleep 600"))
    ended = end(await watch(engine, run_id))
    assert (ended.cause, ended.message) == (EndCause.LOST, "the disk is full")
    left_running = docker_images.docker("ps", "--quiet", f"--filter=label=anubis.run={run_id}")
    assert left_running.stdout == ""


async def test_a_single_unit_has_a_network_of_its_own_where_that_is_wanted(
    image: str, tmp_path: Path
) -> None:
    """And by default it has not: making one takes longer than many a run."""
    plan = shell(image, "ip -o -4 address show dev eth0")
    async with opened(tmp_path / "a") as engine:
        common = output(await run(engine, plan))
    async with opened(tmp_path / "b", private_networks=True) as engine:
        run_id = a_new_run()
        await engine.start(run_id, plan)
        own = output(await watch(engine, run_id))
        assert run_id in docker_images.docker("network", "ls", "--format={{.Name}}").stdout
        await engine.remove(run_id)
        assert run_id not in docker_images.docker("network", "ls", "--format={{.Name}}").stdout
    assert common.split()[3].split(b".")[:2] != own.split()[3].split(b".")[:2]
