"""``emit()`` in real child processes, over stdout and over a real named pipe."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "src" / "anubis" / "emit.py"


def start(program: str, **environment: str) -> subprocess.Popen[str]:
    """A child that has only what a user's program has."""
    clean = {name: value for name, value in os.environ.items() if "BENCHMARK_AI" not in name}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**clean, "PYTHONPATH": str(ROOT / "src"), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, **environment: str) -> tuple[int, str, str]:
    child = start(program, **environment)
    output, errors = child.communicate(timeout=60)
    return child.returncode, output, errors


def through_pipe(pipe: pathlib.Path, program: str, **environment: str) -> list[str]:
    """The lines a program writes to the pipe; it must write nothing else."""
    os.mkfifo(pipe)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(pipe.read_text().splitlines()))
    reader.start()
    result = run(program, BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=str(pipe), **environment)
    reader.join(timeout=60)
    assert result == (0, "", "")
    return lines


@pytest.mark.parametrize("module", ["anubis.emit", "benchmarkai"])
def test_by_default_a_json_line_is_printed(module: str) -> None:
    code, output, errors = run(f"from {module} import emit; emit({{'loss': 0.5, 'größe': 1}})")

    assert (code, errors) == (0, "")
    assert output.count("\n") == 1
    assert json.loads(output) == {"loss": 0.5, "größe": 1}


def test_the_mode_is_read_whatever_its_letter_case() -> None:
    assert run("from anubis.emit import emit; emit({'a': 1})", BENCHMARK_AI="StdOut")[0] == 0


@pytest.mark.parametrize("mode", ["", "file"])
def test_an_unknown_mode_is_an_error_at_import(mode: str) -> None:
    code, _, errors = run("import benchmarkai", BENCHMARK_AI=mode)

    assert code == 1
    assert errors.strip().splitlines()[-1].startswith("ValueError: BENCHMARK_AI")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("[1]", "TypeError"),
        ("None", "TypeError"),
        ("{}", "ValueError"),
        ("{'a': {1}}", "TypeError"),
    ],
)
def test_what_cannot_be_emitted_is_an_error(given: str, error: str) -> None:
    code, output, errors = run(f"from anubis.emit import emit; emit({given})")

    assert (code, output) == (1, "")
    assert errors.strip().splitlines()[-1].startswith(error)


def test_numbers_of_array_libraries_are_understood() -> None:
    program = "import numpy; from anubis.emit import emit; emit({'a': numpy.float32(0.5)})"

    assert run(program)[1] == '{"a": 0.5}\n'


def test_lines_go_to_the_pipe_and_not_to_stdout(tmp_path: pathlib.Path) -> None:
    lines = through_pipe(
        tmp_path / "fifo",
        "from benchmarkai import emit\nfor step in range(3): emit({'step': step})",
    )

    assert [json.loads(line) for line in lines] == [{"step": 0}, {"step": 1}, {"step": 2}]


def test_lines_of_threads_and_forked_children_stay_whole(tmp_path: pathlib.Path) -> None:
    program = """
import os, threading
from anubis.emit import emit
def work():
    for step in range(200):
        emit({"text": "x" * 3000, "step": step})
emit({"first": 1})
threads = [threading.Thread(target=work) for _ in range(2)]
child = os.fork()
if child == 0:
    work()
    os._exit(0)
for thread in threads: thread.start()
for thread in threads: thread.join()
os.waitpid(child, 0)
"""
    lines = through_pipe(tmp_path / "fifo", program)

    assert len(lines) == 601
    assert all(json.loads(line) for line in lines)


def test_a_program_waits_until_the_pipe_appears(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "fifo"
    child = start(
        "from anubis.emit import emit; emit({'a': 1})",
        BENCHMARK_AI="fifo",
        BENCHMARK_AI_FIFO_FILEPATH=str(pipe),
        BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.01",
        BENCHMARK_AI_FIFO_MAX_WAIT_TIME="60",
    )
    assert child.stderr is not None
    assert "waiting" in child.stderr.readline()
    os.mkfifo(pipe)

    assert pipe.read_text() == '{"a": 1}\n'
    child.communicate(timeout=60)
    assert child.returncode == 0


def test_a_pipe_that_never_appears_is_an_error(tmp_path: pathlib.Path) -> None:
    code, output, _ = run(
        "from benchmarkai import emit, FifoNotCreatedInTimeError\n"
        "try: emit({'a': 1})\n"
        "except FifoNotCreatedInTimeError as error: print(error)",
        BENCHMARK_AI="FIFO",
        BENCHMARK_AI_FIFO_FILEPATH=str(tmp_path / "none"),
        BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0.05",
        BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.02",
    )

    assert code == 0
    assert str(tmp_path / "none") in output


def test_it_costs_users_only_light_modules_of_the_standard_library() -> None:
    program = (
        "import sys; import anubis.emit;"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] == 'anubis'));"
        "print('asyncio' in sys.modules, 'numpy' in sys.modules)"
    )

    code, output, _ = run(program, PYTHONNOUSERSITE="1")

    assert code == 0
    assert output.splitlines() == ["anubis anubis.emit", "False False"]


def test_it_keeps_to_the_syntax_of_python_3_8() -> None:
    ast.parse(SOURCE.read_text(), feature_version=(3, 8))


LISTENER_DIES = """
import os
from anubis.emit import emit
emit({"number": 0})
print("emitted", flush=True)
input()
for number in range(1, 4):
    emit({"number": number})
"""


def test_a_listener_that_was_killed_is_waited_for_and_finds_all(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    first = os.open(pipe, os.O_RDWR)
    child = start(LISTENER_DIES, BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=str(pipe))
    assert child.stdout is not None
    assert child.stdout.readline() == "emitted\n"
    os.close(first)  # without having read a byte
    lines: list[str] = []
    reader = threading.Timer(0.3, lambda: lines.extend(pipe.read_text().splitlines()))
    reader.start()
    _, errors = child.communicate("go\n", timeout=60)
    reader.join(timeout=60)
    assert (child.returncode, errors) == (0, "")
    assert [json.loads(line)["number"] for line in lines] == [0, 1, 2, 3]


def test_a_program_does_not_wait_for_ever_for_a_listener(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    first = os.open(pipe, os.O_RDWR)
    child = start(
        LISTENER_DIES,
        BENCHMARK_AI="fifo",
        BENCHMARK_AI_FIFO_FILEPATH=str(pipe),
        BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0.1",
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "emitted\n"
    os.close(first)
    _, errors = child.communicate("go\n", timeout=60)
    assert child.returncode == 1
    assert "BrokenPipeError" in errors
