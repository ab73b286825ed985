"""Every problem is told at once, at its place, in words that say what to do."""

from __future__ import annotations

import pytest

from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.domain.problem import Problem
from anubis.stages.descriptor.parsing import parse
from anubis.stages.descriptor.reporting import MAX_PROBLEMS

HEAD = 'spec_version = "0.1.0"\ninfo.description = "d"\n'


def problems(text: str | bytes) -> tuple[Problem, ...]:
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(DescriptorInvalid) as caught:
        parse(Document(name="f.toml", directory="", content=content))
    return caught.value.problems


def told(text: str | bytes) -> list[str]:
    return [str(problem).removeprefix("f.toml:") for problem in problems(text)]


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    text = """\
spec_version = 1
[inf]
description = "x"
[info]
descripton = "x"
labels = { task_name = "a b", "é" = "x" }
[hardware]
strategy = "singl_node"
niceness = 40
docker_image = "x"
[[output.metrics]]
name = "a"
pattern = '(a)(b)'
[[output.metrics]]
name = "a"
units = "x"
pattern = '(?=x)'
[server.env]
ports = [
  80,
  "x",
]
args = "x"
"""
    found = [(p.line, p.column, p.field, p.found, p.hint) for p in problems(text)]
    label = "1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
    assert found == [
        (1, 16, "spec_version", "the number 1", "put it in quotes"),
        (2, 2, "inf", 'unknown key "inf"', "did you mean 'info'?"),
        (
            4,
            1,
            "info.description",
            "nothing",
            "it is required: What the benchmark measures, for people.",
        ),
        (5, 1, "info.descripton", 'unknown key "descripton"', "did you mean 'description'?"),
        (6, 24, "info.labels.task_name", 'the text "a b"', ""),
        (6, 31, 'info.labels."é"', 'the name "é"', ""),
        (8, 12, "hardware.strategy", 'the text "singl_node"', "did you mean 'single_node'?"),
        (9, 12, "hardware.niceness", "the number 40", ""),
        (
            10,
            1,
            "hardware.docker_image",
            'unknown key "docker_image"',
            "'docker_image' belongs to [env]",
        ),
        (
            11,
            1,
            "output.metrics[0].units",
            "nothing",
            "it is required: What the number counts, such as seconds.",
        ),
        (
            13,
            11,
            "output.metrics[0].pattern",
            "a pattern with 2 groups",
            "write (?:...) instead of (...) for the others",
        ),
        (15, 8, "output.metrics[1].name", 'the name "a" a second time', "the first is on line 11"),
        (
            17,
            11,
            "output.metrics[1].pattern",
            'the text "(?=x)"',
            (
                'invalid perl operator near "(?=": look-ahead, look-behind and comments are not '
                "possible in RE2; match the text around and put the number in a group"
            ),
        ),
        (
            18,
            1,
            "server.env.start_command",
            "nothing",
            "it is required: The command that starts the server, without a shell.",
        ),
        (21, 3, "server.env.ports[1]", 'the text "x"', ""),
        (23, 1, "server.env.args", 'unknown key "args"', "did you mean 'start_command_args'?"),
    ]
    by_field = {problem.field: problem.expected for problem in problems(text)}
    assert by_field['info.labels."é"'] == label
    assert by_field["server.env.ports[1]"] == "a whole number from 1 to 65535"


@pytest.mark.parametrize(
    ("tail", "place", "words"),
    [
        ("info.scheduling = '0 0 0 0'", (3, 19), "five cron fields"),
        ("info.scheduling = '0 0 31 2 *'", (3, 19), "bad day-of-month"),
        ("info.scheduling = '* * * * * *'", (3, 19), "five cron fields"),
        ("info.scheduling = 'single'", (3, 19), "did you mean 'single_run'?"),
        ("info.scheduling = '@dayly'", (3, 19), "did you mean '@daily'?"),
        (f"info.scheduling = '{'1' * 5000} * * * *'", (3, 19), "five cron fields"),
        ("schedule.overlap = 'skip'", (3, 1), "found a [schedule] table for a benchmark that runs"),
        ("info.execution_engine = 'Process'", (3, 25), "did you mean 'process'?"),
        ("hardware = 3", (3, 12), "found the number 3, expected a table"),
        ("hardware.distributed.num_instances = '3'", (3, 38), "without quotes: 3"),
        ("hardware.distributed.num_instances = 0", (3, 38), "of at least 1"),
        ("hardware.distributed.processes_per_instance = '0'", (3, 47), '"gpus"'),
        ("hardware.cpu_affinity = '3-1'", (3, 25), "did you mean '1-3'?"),
        ("hardware.cpu_affinity = '0-99999'", (3, 25), "CPU numbers from 0 to 8191"),
        ("hardware.cpu_affinity = [true]", (3, 25), "CPU numbers as a list"),
        ("hardware.cpus = 100000", (3, 17), "such as 4 or 0.5 (at most 8192)"),
        ("hardware.cpus = inf", (3, 17), "such as 4 or 0.5 (at most 8192)"),
        ("hardware.cpus = nan", (3, 17), "a number of CPUs above zero, such as 4 or 0.5"),
        ("hardware.memory = '9999999999TiB'", (3, 19), "(at most 8 million TiB)"),
        ("env.privileged = 'True'", (3, 18), "write it without quotes: true"),
        ("env.vars = {A = 1}", (3, 17), "found the number 1, expected text (put it in quotes)"),
        ("env.vars = {'A=B' = ''}", (3, 13), "has no '='"),
        ('env.vars = {A = "\\u0000"}', (3, 17), "text without NUL characters"),
        ('ml.args = "a \'b"', (3, 11), "a quote is opened and never closed"),
        ("ml.benchmark_code = 'a\\'", (3, 21), "it ends with a backslash"),
        ("ml.framework = 'tensorfow'", (3, 16), "did you mean 'tensorflow'?"),
        ("ml.framework_version = '1'", (3, 1 + 3), "expected a framework beside it"),
        ("ml.script.script = 'a.zip'", (3, 20), "the name of a .tar file"),
        ("[ml.script]", (3, 1), "ml.script.script: found nothing"),
        ("data.sources = {src = 'a'}", (3, 16), "write [[data.sources]]"),
        ("data.sources = [{src = 'a', uri = 'b', path = 'c'}]", (3, 29), "both 'uri' and 'src'"),
        ("data.sources = [1]", (3, 17), "data.sources[0]: found the number 1, expected a table"),
        ("output.metrics = [{name=' ', units='', pattern='a'}]", (3, 25), "that is not empty"),
        ("output.metrics = [{name='a', units='', pattern=''}]", (3, 48), "that is not empty"),
        ("output.metrics = [{name='a', units='', pattern='(a'}]", (3, 48), "a '(' is not closed"),
        ("hardware.strategy = 'inference'", (3, 21), "without a [server] table"),
        ("hardware.strategy = 'client_server'", (3, 21), "without a [server] table"),
        ("server.env.ports = 80\nserver.env.start_command = ''", (3, 20), "a list of ports"),
        ("[server]", (3, 1), "It needs ports and start_command."),
        ("[[hardware]]", (3, 3), "write [hardware] in single brackets"),
        ("limits.running = '90x'", (3, 18), "units are ms, s, m, h and d"),
        ("limits.running = ''", (3, 18), '"90s", "15m", "2h" or "1d"'),
        ("limits.running = 0", (3, 18), "seconds above zero"),
        ("limits.running = nan", (3, 18), "seconds above zero"),
        ("limits.running = true", (3, 18), "seconds above zero"),
        ("limits.running = 0x" + "f" * 3000, (3, 18), "found a huge number"),
        ("limits.grace = -1", (3, 16), "seconds, or text"),
        ("limits.output_size = 1.5", (3, 22), "bytes above zero"),
        ("limits.output_size = '0B'", (3, 22), "bytes above zero"),
        ("info.labels = [1979-05-27]", (3, 15), "found a list, expected a table of texts"),
        ("info.labels.a = 1979-05-27", (3, 17), "found the date or time 1979-05-27"),
    ],
)
def test_a_bad_value_is_told_at_its_place(tail: str, place: tuple[int, int], words: str) -> None:
    (problem,) = problems(HEAD + tail)
    assert (problem.line, problem.column) == place
    assert words in str(problem)


PROBE = "server.env = {ports = [], start_command = '', readiness_probe = "


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ("'nope'}", "as a URL it would look like"),
        ("'ftp://localhost/x'}", "as a URL it would look like"),
        ("'http://localhost:99999/x'}", "as a URL it would look like"),
        ("'http://[x'}", "as a URL it would look like"),
        ("7}", "expected a table such as"),
        ("'http://localhost/x'}", "the server has no ports to take the first of"),
        ("{path = '/'}}", "the server has no ports to take the first of"),
        ("{path = '/', port = 0}}", "a whole number from 1 to 65535"),
        ("{path = '/', port = 1, scheme = 'ftp'}}", 'one of "http" or "https"'),
        ("{port = 1}}", "readiness_probe.path: found nothing"),
    ],
)
def test_a_bad_probe_is_explained(probe: str, words: str) -> None:
    (problem,) = problems(HEAD + PROBE + probe)
    assert words in str(problem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            (
                "1:1: error: found an empty file, expected a descriptor "
                "('anubis init' writes one to start from)"
            ),
        ),
        (
            "\ufeff \r\n",
            (
                "1:1: error: found an empty file, expected a descriptor "
                "('anubis init' writes one to start from)"
            ),
        ),
        (
            "x = foo",
            (
                '1:5: error: found "foo", expected a value: text in quotes, a number, true, false, '
                'a list or a table (text needs quotes: "foo")'
            ),
        ),
        ("x: 3", "1:2: error: found \":\", expected '=' after the key (TOML writes '=', not ':')"),
        (
            "[info]\na = 1\na = 2",
            (
                '3:1: error: info.a: found "a" a second time, expected every key and table once '
                "(the first is on line 2)"
            ),
        ),
        (
            "[info]\n[info]",
            (
                '2:2: error: info: found "info" a second time, expected every key and table once '
                "(the first is on line 1)"
            ),
        ),
        (
            "p = '1'\nq = \"\\d+\"",
            (
                '2:6: error: found "\\\\d+\\"", expected an escape that TOML knows '
                "(write the text in single quotes, or every backslash twice)"
            ),
        ),
        (
            "a.b = 1\na = 2",
            (
                '2:1: error: a: found "a" a second time, expected every key and table once '
                "(the first is on line 1)"
            ),
        ),
        ("x = [1 2]", "1:8: error: found \"2\", expected ',' or ']' in a list"),
        (
            "x = 08",
            '1:6: error: found "8", expected the end of the line (numbers have no leading zeros)',
        ),
        (
            'a = 1\nx = """abc\ny = 2\n',
            (
                "2:5: error: found text whose quotes are never closed, expected closing quotes "
                "like the opening ones (text over several lines needs three quotes on each side)"
            ),
        ),
        ("x = 1979-02-30", '1:5: error: found "1979-02-30", expected a date that exists'),
        ("[a\nb = 1", "1:3: error: found the end of the line, expected ']' at the end of the"),
        (
            b"a = '\xc3\xa4\xff'",
            (
                "1:7: error: found the byte 0xff, which is not UTF-8, expected text in UTF-8 "
                "(save the file as UTF-8)"
            ),
        ),
        (
            "a = 1".encode("utf-16"),
            (
                "1:1: error: found the byte 0xff, which is not UTF-8, expected text in UTF-8 "
                "(the file looks like UTF-16; save the file as UTF-8)"
            ),
        ),
        (
            "a = 1\nb\0",
            "2:2: error: found a NUL character, expected text (is this really a TOML file?)",
        ),
        (
            b"#" * (1024 * 1024 + 1),
            (
                "1:1: error: found a file of 1,048,577 bytes, expected a descriptor of at most "
                "1,048,576 bytes"
            ),
        ),
        (
            "x = " + "[" * 100_000,
            "1:69: error: found a value nested more than 64 levels deep, expected at most 64",
        ),
        (
            "x = " + "1" * 5000,
            "1:5: error: found a value of 5,000 characters without quotes, expected at most 4,000",
        ),
    ],
)
def test_what_is_not_toml_is_one_problem_with_a_place(text: str | bytes, message: str) -> None:
    (line,) = told(text)
    assert line.startswith(message)


def test_a_hostile_file_is_told_in_bounded_length() -> None:
    text = HEAD + "".join(f"k{number} = 1\n" for number in range(20_000))
    found = problems(text)
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].found == f"{20_000 - MAX_PROBLEMS:,} more problems"


def test_nothing_in_a_message_can_disturb_a_terminal() -> None:
    text = 'spec_version = "\\u001b[2J"\n[info]\n"\\u009b\\u202e" = 1\n' + f'"{"k" * 5000}" = 1'
    text += '\ndescription = 5\nscheduling = "\\u001b]0;x"'
    for problem in problems(text):
        assert str(problem).isprintable()
        assert len(problem.found) < 200


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("time_zone = 'Europe/Berln'", "did you mean 'Europe/Berlin'?"),
        ("time_zone = 'utc'", "did you mean 'UTC'?"),
        ("time_zone = 'Europe'", "the IANA name of a time zone"),
        ("time_zone = '../../../etc/passwd'", "the IANA name of a time zone"),
        ("time_zone = 'right/Europe/Berlin'", "the IANA name of a time zone"),
        ("time_zone = 'localtime'", "the IANA name of a time zone"),
        (f"time_zone = '{'A/' * 500}'", "the IANA name of a time zone"),
        ("time_zone = 2", "the IANA name of a time zone"),
        ("overlap = 'skp'", "did you mean 'skip'?"),
        ("catch_up = 'all'", 'overlap = "queue" beside it'),
        ("timezone = 'UTC'", "did you mean 'time_zone'?"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_explained(line: str, words: str) -> None:
    text = f"{HEAD}info.scheduling = '@daily'\n[schedule]\n{line}"
    [problem] = problems(text)
    assert problem.line == 5
    assert words in str(problem)


def test_more_sources_than_a_run_can_have_are_refused() -> None:
    source = '[[data.sources]]\nsrc = "/x"\npath = "/y"\n'
    (line,) = told(HEAD + 2001 * source)
    assert line.endswith("data.sources: found 2,001 items, expected at most 2,000")
