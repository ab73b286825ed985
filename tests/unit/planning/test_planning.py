"""Descriptors become plans, or a sentence for each thing the engine cannot do."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from anubis.domain import blanks
from anubis.domain import descriptor as model
from anubis.domain.errors import UserError
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import Limits, Mount, Plan, Unit
from anubis.ports.engine import Capabilities
from anubis.stages.planning.planning import Context, plan

PROCESS = Capabilities(
    name="process",
    strategies=frozenset({"single_node"}),
    needs_image=False,
    honours_affinity=True,
)
IMAGES = Capabilities(
    name="docker",
    strategies=frozenset({"single_node"}),
    needs_image=True,
    honours_affinity=False,
    honours_niceness=False,
)
CONTEXT = Context(
    directory="/here", environment={"HOME": "/home/me", "A": "outer"}, python="/opt/python"
)


def described(
    code: str = "run", args: str = "", variables: dict[str, str] | None = None, image: str = ""
) -> model.Descriptor:
    return model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        env=model.Environment(docker_image=image, vars=variables or {}),
        ml=model.MachineLearning(benchmark_code=code, args=args),
    )


def command(code: str, args: str = "", variables: dict[str, str] | None = None) -> tuple[str, ...]:
    return plan(described(code, args, variables), PROCESS, CONTEXT).units[0].command


def obstacles(descriptor: model.Descriptor, capabilities: Capabilities = PROCESS) -> list[str]:
    with pytest.raises(UserError) as caught:
        plan(descriptor, capabilities, CONTEXT)
    return str(caught.value).split("\n")


def test_a_single_program_becomes_one_unit_that_decides() -> None:
    descriptor = model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        hardware=model.Hardware(cpu_affinity=(0, 2), niceness=3),
        env=model.Environment(docker_image="ignored", vars={"A": "inner"}),
        ml=model.MachineLearning(
            benchmark_code="$(ANUBIS_PYTHON) train.py", args="--a $(A) --home=${HOME}"
        ),
        output=model.Output(metrics=(model.Metric(name="loss", units="1", pattern="l=(.*)"),)),
        limits=Limits(running=timedelta(minutes=1)),
    )
    assert plan(descriptor, PROCESS, CONTEXT) == Plan(
        units=(
            Unit(
                name="benchmark",
                command=("/opt/python", "train.py", "--a", "inner", "--home=/home/me"),
                environment={"ANUBIS_PYTHON": "/opt/python", "A": "inner"},
                inherited={"HOME": "/home/me", "A": "outer"},
                directory="/here",
                cpu_affinity=(0, 2),
                niceness=3,
            ),
        ),
        deciding="benchmark",
        limits=Limits(running=timedelta(minutes=1)),
        metrics=(MetricDefinition(name="loss", units="1", pattern="l=(.*)"),),
    )


def test_an_engine_with_images_gets_the_image_and_may_get_no_command() -> None:
    (unit,) = plan(described("", image="user/repo:tag"), IMAGES, CONTEXT).units
    assert (unit.image, unit.command) == ("user/repo:tag", ())
    assert unit.inherited == {}


@pytest.mark.parametrize(
    ("code", "args", "expected"),
    [
        ("a b", "c", ("a", "b", "c")),
        ("a 'b c' \"d e\" f\\ g", "''", ("a", "b c", "d e", "f g", "")),
        ("a", "$(WORDS) x$(WORDS)y", ("a", "two words", "xtwo wordsy")),
        ("a", "'$(WORDS)' \"${WORDS}\"", ("a", "two words", "two words")),
        ("a", "$$(WORDS) $${WORDS}", ("a", "$(WORDS)", "${WORDS}")),
        ("a", "$$(NOWHERE)", ("a", "$(NOWHERE)")),
        ("a", "$WORDS $$ $ $() ${} $(WORDS", ("a", "$WORDS", "$$", "$", "$()", "${}", "$(WORDS")),
        ("sh -c", "'echo $(ls -l) ${X:-1} $1'", ("sh", "-c", "echo $(ls -l) ${X:-1} $1")),
        ("a", "$(NESTED)", ("a", "$(WORDS)")),
        ("a", "$(dotted.name-x)", ("a", "dotted")),
        ("a # b", "", ("a", "#", "b")),
        ("a\n  b \\\n c", "", ("a", "b", "c")),
    ],
)
def test_commands_are_split_as_by_a_shell_and_variables_replaced_without_one(
    code: str, args: str, expected: tuple[str, ...]
) -> None:
    variables = {"WORDS": "two words", "NESTED": "$(WORDS)", "dotted.name-x": "dotted"}
    assert command(code, args, variables) == expected


def test_the_users_variables_win_over_ours_and_ours_over_the_surroundings() -> None:
    assert command("$(A)", variables={"A": "mine"}) == ("mine",)
    assert command("$(ANUBIS_PYTHON)", variables={"ANUBIS_PYTHON": "pypy"}) == ("pypy",)
    assert command("$(A)") == ("outer",)


def test_every_variable_that_is_not_defined_is_named_once() -> None:
    found = obstacles(described("a $(ONE) ${TWO}", "$(ONE) $(HOME)"))
    assert len(found) == 2
    assert "$(ONE) names a variable that is not defined" in found[0]
    assert "${TWO} names a variable that is not defined" in found[1]
    assert "$${TWO} if the text itself is meant" in found[1]


def test_who_forgets_to_submit_code_is_told_how() -> None:
    (line,) = obstacles(described("run $(BAI_SCRIPTS_PATH)/a"))
    assert line.endswith("add --script PATH")


@pytest.mark.parametrize("shell", ["bash", "/bin/sh", "dash"])
def test_what_a_shell_can_expand_itself_is_left_to_it(shell: str) -> None:
    expected = (shell, "-c", "echo $(nproc) ${UNKNOWN} outer")
    assert command(f"{shell} -c", "'echo $(nproc) ${UNKNOWN} $(A)'") == expected


def test_everything_the_engine_cannot_do_is_told_at_once_with_its_field() -> None:
    source = model.Source(src="https://me:secret@example.org/a", path="/b/../c", md5="42")
    descriptor = model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        hardware=model.Hardware(strategy=model.Strategy.INFERENCE, cpu_affinity=(1,), niceness=5),
        ml=model.MachineLearning(benchmark_code="$(NOWHERE)"),
        data=model.Data(sources=(source,)),
        server=model.Server(
            env=model.ServerEnvironment(ports=(), start_command="$(NEITHER)"),
            hardware=model.ServerHardware(cpu_affinity=(1,)),
            models=(source,),
        ),
    )
    found = obstacles(descriptor, IMAGES)
    assert [line.partition(": ")[0] for line in found] == [
        "hardware.strategy",
        "server.env.docker_image",
        "server.hardware.cpu_affinity",
        "server.env.start_command, server.env.start_command_args",
        "env.docker_image",
        "hardware.cpu_affinity",
        "hardware.niceness",
        "ml.benchmark_code, ml.args",
        "data.sources[0].src",
        "data.sources[0].md5",
        "data.sources[0].path",
        "server.models[0].src",
        "server.models[0].md5",
        "server.models[0].path",
    ]
    assert not any("secret" in line for line in found)
    assert "set it in [server.env.vars]" in found[3]


def test_a_server_that_nobody_asks_for_needs_nothing() -> None:
    source = model.Source(src="s3://a/b", path="/b")
    server = model.Server(env=model.ServerEnvironment(ports=(), start_command=""), models=(source,))
    made = plan(dataclasses.replace(described(), server=server), PROCESS, CONTEXT)
    assert made.fetches == ()


@pytest.mark.parametrize("code", ["", "  \n"])
def test_a_process_needs_a_command(code: str) -> None:
    (line,) = obstacles(described(code, "--fast"))
    assert line.startswith("ml.benchmark_code: the engine 'process' runs no images")


def test_a_command_that_is_empty_after_all_is_refused() -> None:
    (line,) = obstacles(described("$(EMPTY) x", variables={"EMPTY": ""}))
    assert line == "ml.benchmark_code: the command is empty"


def test_images_see_nothing_of_the_surroundings() -> None:
    (line,) = obstacles(described("run $(HOME)", image="i"), IMAGES)
    assert "$(HOME) names a variable that is not defined" in line
    (unit,) = plan(described("run", image="i"), IMAGES, CONTEXT).units
    assert (unit.directory, unit.inherited) == (None, {})


def test_code_that_is_submitted_beside_a_descriptor_is_found_by_variable() -> None:
    context = dataclasses.replace(CONTEXT, script="code.tar")
    (unit,) = plan(described("run $(BAI_SCRIPTS_PATH)/a"), PROCESS, context).units
    assert unit.script == "code.tar"
    assert unit.command == ("run", f"{blanks.SCRIPTS}/a")
    (unit,) = plan(described("run /bai/scripts/a"), PROCESS, context).units
    assert unit.command == ("run", f"{blanks.SCRIPTS}/a")
    isolating = dataclasses.replace(IMAGES, isolates=True)
    (unit,) = plan(described("run $(BAI_SCRIPTS_PATH)/a", image="i"), isolating, context).units
    assert unit.command == ("run", "/bai/scripts/a")
    assert unit.mounts == (Mount(source=blanks.SCRIPTS, target="/bai/scripts", read_only=False),)


@pytest.mark.parametrize(
    "image",
    [
        "python",
        "team/train:1",
        "localhost/a__b/c--d:V_1.2",
        "registry.example.com:5000/team/train@sha256:" + "0" * 64,
        "[::1]:5000/train:1",
        "sha256:" + "0" * 64,
    ],
)
def test_images_are_called_as_registries_call_them(image: str) -> None:
    assert plan(described(image=image), IMAGES, CONTEXT).units[0].image == image


@pytest.mark.parametrize(
    "image",
    ["team/Train", "two words", "train:", "a//b", "https://a/b", "train\n", "a" * 256, "a-" * 5000],
)
def test_what_no_image_can_be_called_is_refused_before_anything_runs(image: str) -> None:
    [obstacle] = obstacles(described(image=image), IMAGES)

    assert obstacle.startswith("env.docker_image: found '")
    assert "expected the name of an image, such as 'team/train:1'" in obstacle
    assert len(obstacle) < 300
    assert plan(described(image=image), PROCESS, CONTEXT).units[0].image is None


def test_a_variable_that_an_engine_cannot_name_is_refused_before_anything_runs() -> None:
    made = described(image="a", variables={"größe": "1", "a b": "2"})
    strict = dataclasses.replace(IMAGES, takes_any_variable=False)

    [obstacle] = obstacles(made, strict)
    assert obstacle == (
        "env.vars: found the name 'größe', expected printable ASCII: "
        "the engine 'docker' takes no other"
    )
    assert plan(made, IMAGES, CONTEXT).units[0].environment["größe"] == "1"
