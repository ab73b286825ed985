"""Programs that do what programs should not do, run for real."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import random
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.domain.observation import EmittedChunk, EndCause, OutputChunk, Stream, UnitStarted
from anubis.domain.plan import Limits, Plan
from anubis.testing.contracts.engine import a_plan, end, output, run

MEBIBYTE = 1 << 20
FAST = Limits(grace=timedelta(seconds=0.3))


def shell(text: str, limits: Limits | None = None) -> Plan:
    return a_plan("sh", "-c", text, limits=limits)


def python(text: str, limits: Limits | None = None) -> Plan:
    return a_plan(sys.executable, "-I", "-S", "-c", text, limits=limits)


async def test_a_flood_of_output_is_kept_to_the_last_byte(engine: ProcessEngine) -> None:
    size = 256 * MEBIBYTE
    seen = await run(engine, shell(f"head -c {size} /dev/zero | tr '\\0' x"))
    chunks = [o.data for o in seen if isinstance(o, OutputChunk)]
    assert sum(map(len, chunks)) == size
    assert max(map(len, chunks)) <= MEBIBYTE
    assert all(chunk.count(b"x") == len(chunk) for chunk in chunks)
    assert end(seen).exit_code == 0


async def test_lines_of_ten_megabytes_are_kept(engine: ProcessEngine) -> None:
    seen = await run(engine, python("print('a' * 10**7); print('b' * 10**7)"))
    assert output(seen) == b"a" * 10**7 + b"\n" + b"b" * 10**7 + b"\n"


async def test_binary_garbage_on_both_streams_is_kept_as_it_is(engine: ProcessEngine) -> None:
    program = (
        "import os, random; r = random.Random(7); a, b = r.randbytes(300000), r.randbytes(200000)\n"
        "os.write(1, a[:100000]); os.write(2, b); os.write(1, a[100000:])"
    )
    seen = await run(engine, python(program))
    expected = random.Random(7)
    assert output(seen) == expected.randbytes(300000)
    assert output(seen, Stream.STDERR) == expected.randbytes(200000)


async def test_a_program_that_says_nothing_has_no_output(engine: ProcessEngine) -> None:
    seen = await run(engine, a_plan("true"))
    assert not any(isinstance(o, OutputChunk | EmittedChunk) for o in seen)


async def test_a_program_may_close_its_output_and_go_on(engine: ProcessEngine) -> None:
    seen = await run(engine, shell("echo before; exec >&- 2>&-; sleep 0.3; exit 5"))
    assert output(seen) == b"before\n"
    assert end(seen).exit_code == 5


async def test_reopening_the_streams_by_name_destroys_nothing(engine: ProcessEngine) -> None:
    text = "echo 1 >/dev/stderr; echo 2 >/dev/stderr; echo 3 | tee /dev/stderr; echo 4 >/dev/stdout"
    seen = await run(engine, shell(text))
    assert output(seen, Stream.STDERR) == b"1\n2\n3\n"
    assert output(seen) == b"3\n4\n"


async def test_alternating_streams_keep_their_order(engine: ProcessEngine) -> None:
    text = "for i in 1 2 3 4 5; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done"
    seen = await run(engine, shell(text))
    lines = b"".join(o.data for o in seen if isinstance(o, OutputChunk)).split()
    assert lines == [b"o1", b"e1", b"o2", b"e2", b"o3", b"e3", b"o4", b"e4", b"o5", b"e5"]


async def test_a_chatty_program_loses_no_line(engine: ProcessEngine) -> None:
    program = "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d\\n' % i)"
    seen = await run(engine, python(program))
    assert output(seen).split() == [b"%d" % i for i in range(0, 20000, 2)]
    assert output(seen, Stream.STDERR).split() == [b"%d" % i for i in range(1, 20000, 2)]


async def test_reading_standard_input_finds_nothing(engine: ProcessEngine) -> None:
    assert output(await run(engine, shell("cat; echo done"))) == b"done\n"


async def test_a_signal_from_elsewhere_is_told(engine: ProcessEngine) -> None:
    ended = end(await run(engine, shell("kill -SEGV $$")))
    assert (ended.cause, ended.exit_code, ended.signal) == (EndCause.EXITED, None, signal.SIGSEGV)


async def test_sigpipe_kills_as_it_does_in_a_shell(engine: ProcessEngine) -> None:
    program = "yes | head -n 1; echo ${PIPESTATUS[0]}"
    seen = await run(engine, a_plan("bash", "-c", program))
    assert output(seen) == b"y\n141\n"


async def test_daemons_are_found_counted_and_stopped(engine: ProcessEngine) -> None:
    seen = await run(engine, shell("setsid sleep 600 & setsid sleep 600 & echo started", FAST))
    assert output(seen) == b"started\n"
    assert end(seen).left_behind == 2
    assert end(seen).exit_code == 0


async def test_a_deaf_double_forked_daemon_does_not_survive(engine: ProcessEngine) -> None:
    program = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(1, b"daemon\\n")
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(0.2)
"""
    seen = await run(engine, python(program, FAST))
    assert output(seen) == b"daemon\n"
    assert end(seen).left_behind == 1


async def test_children_that_end_by_themselves_are_not_disturbed(engine: ProcessEngine) -> None:
    seen = await run(engine, a_plan("bash", "-c", "exec > >(sleep 0.05; cat); echo late"))
    assert output(seen) == b"late\n"
    assert end(seen).left_behind == 0


async def test_a_timeout_ends_the_whole_tree(engine: ProcessEngine) -> None:
    limits = Limits(running=timedelta(seconds=0.3), grace=timedelta(seconds=0.2))
    seen = await run(engine, shell("trap '' TERM; (trap '' TERM; sleep 600) & sleep 600", limits))
    assert end(seen).cause is EndCause.TIMED_OUT
    assert end(seen).signal == signal.SIGKILL


async def test_a_program_may_tidy_up_when_it_is_stopped(engine: ProcessEngine) -> None:
    limits = Limits(running=timedelta(seconds=0.3))
    text = "trap 'echo tidied; exit 7' TERM; while :; do sleep 0.02; done"
    seen = await run(engine, shell(text, limits))
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.TIMED_OUT, 7)
    assert output(seen) == b"tidied\n"


async def test_output_over_the_limit_stops_the_run_and_is_cut_there(engine: ProcessEngine) -> None:
    limits = Limits(output_bytes=1_000_000, grace=timedelta(seconds=0.2))
    seen = await run(engine, shell("trap '' TERM; yes", limits))
    assert end(seen).cause is EndCause.OUTPUT_LIMIT
    assert len(output(seen)) == 1_000_000


async def test_output_of_exactly_the_limit_is_allowed(engine: ProcessEngine) -> None:
    limits = Limits(output_bytes=5)
    assert end(await run(engine, shell("echo 1234", limits))).cause is EndCause.EXITED
    assert end(await run(engine, shell("echo 12345", limits))).cause is EndCause.OUTPUT_LIMIT


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no-such-program", "'no-such-program' was not found in PATH"),
        ("/nowhere/program", "'/nowhere/program' does not exist"),
        ("/etc/passwd", "'/etc/passwd' is not executable"),
    ],
)
async def test_what_cannot_be_executed_is_named(
    engine: ProcessEngine, name: str, words: str
) -> None:
    ended = end(await run(engine, a_plan(name)))
    assert ended.cause is EndCause.NOT_STARTED
    assert words in ended.message


async def test_a_file_in_no_executable_format_is_named(
    engine: ProcessEngine, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\0\1\2\3")
    program.chmod(0o755)
    ended = end(await run(engine, a_plan(str(program))))
    assert ended.cause is EndCause.NOT_STARTED
    assert "neither a binary for this machine nor a script" in ended.message


async def test_a_missing_directory_is_named(engine: ProcessEngine) -> None:
    ended = end(await run(engine, a_plan("true", directory="/nowhere")))
    assert ended.cause is EndCause.NOT_STARTED
    assert "working directory '/nowhere'" in ended.message


@pytest.mark.parametrize("others", [(), (min(os.sched_getaffinity(0)),)])
async def test_a_cpu_that_does_not_exist_is_named(
    engine: ProcessEngine, others: tuple[int, ...]
) -> None:
    """Also beside CPUs that do exist: the kernel alone would pass over it."""
    ended = end(await run(engine, a_plan("true", cpu_affinity=(*others, 4000))))
    assert ended.cause is EndCause.NOT_STARTED
    assert "4000]" in ended.message


async def test_affinity_and_niceness_are_really_applied(engine: ProcessEngine) -> None:
    cpu = max(os.sched_getaffinity(0))
    program = "import os; print(os.sched_getaffinity(0), os.nice(0))"
    plan = a_plan(sys.executable, "-c", program, cpu_affinity=(cpu,), niceness=7)
    assert output(await run(engine, plan)) == f"{{{cpu}}} 7\n".encode()


async def test_a_program_inherits_three_descriptors_and_no_blocked_signal(
    engine: ProcessEngine,
) -> None:
    text = "ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f 2"
    words = output(await run(engine, shell(text))).split()
    assert words[:3] == [b"0", b"1", b"2"]
    ours_to_set = ~(0b11 << 31)  # the C library keeps 32 and 33 to itself
    assert {int(word, 16) & ours_to_set for word in words[-2:]} == {0}


async def test_the_environment_has_what_emit_needs_and_what_the_user_says(
    engine: ProcessEngine,
) -> None:
    names = "BENCHMARK_AI BENCHMARK_AI_FIFO_MAX_WAIT_TIME ANUBIS_UNIT EXTRA ANUBIS_RUN_ID"
    extra = {"EXTRA": "é", "BENCHMARK_AI": "stdout", "ANUBIS_RUN_ID": "forged"}
    seen = await run(engine, a_plan("printenv", *names.split(), environment=extra))
    mode, wait, unit, word, run_id = output(seen).decode().splitlines()
    assert (mode, wait, unit, word) == ("stdout", "60", "benchmark", "é")
    assert run_id != "forged"


async def test_a_program_without_a_directory_gets_an_empty_one(engine: ProcessEngine) -> None:
    assert output(await run(engine, shell("ls -A | wc -l"))).strip() == b"0"


async def test_a_large_environment_and_long_arguments_arrive(engine: ProcessEngine) -> None:
    text = "x" * 100_000
    plan = a_plan("printenv", "LONG", environment={"LONG": text})
    digest = hashlib.sha256(output(await run(engine, plan)).strip()).digest()
    assert digest == hashlib.sha256(text.encode()).digest()


async def test_cpu_time_of_ended_children_counts(engine: ProcessEngine) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    seen = await run(engine, shell(f"{sys.executable} -S -c '{burn}'; true"))
    assert end(seen).cpu_seconds >= 0.3


async def test_a_small_program_is_not_given_the_size_of_its_shim(engine: ProcessEngine) -> None:
    """The kernel would say that it was as large as the shim that started it."""
    seen = await run(engine, a_plan("sleep", "0.3"))
    assert end(seen).peak_memory_bytes < 5_000_000


async def test_peak_memory_is_that_of_the_largest_process(engine: ProcessEngine) -> None:
    seen = await run(engine, python("x = b'1' * 100_000_000"))
    assert 100_000_000 < end(seen).peak_memory_bytes < 200_000_000
    assert isinstance(seen[0], UnitStarted)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change what is read-only")
async def test_not_even_root_changes_data_that_other_runs_read(
    engine: ProcessEngine, tmp_path: Path
) -> None:
    """A file and a folder of the cache; the rest of the machine is as it was."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("content")
    (tmp_path / "file").write_text("content")
    kept = [str(tmp_path / "folder"), str(tmp_path / "file")]
    text = (
        f"cd {tmp_path}; cat file folder/a; for f in file folder/a folder/b; do echo z > $f; done"
    )
    plan = dataclasses.replace(
        a_plan("sh", "-c", f"{text}; rm -f folder/a; echo mine > own"), protected=tuple(kept)
    )
    seen = await run(engine, plan)
    assert output(seen) == b"contentcontent"
    assert output(seen, Stream.STDERR).count(b"Read-only file system") == 4
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "a").read_text() == "content"
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a"]
    assert (tmp_path / "own").read_text() == "mine\n"
    assert str(tmp_path / "folder") not in Path("/proc/mounts").read_text()
