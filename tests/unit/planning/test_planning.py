"""Descriptors become plans, or a sentence for each thing the engine cannot do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from anubis.domain import descriptor as model
from anubis.domain.errors import UserError
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import Limits, Plan, Unit
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


@pytest.mark.parametrize("shell", ["bash", "/bin/sh", "dash"])
def test_what_a_shell_can_expand_itself_is_left_to_it(shell: str) -> None:
    expected = (shell, "-c", "echo $(nproc) ${UNKNOWN} outer")
    assert command(f"{shell} -c", "'echo $(nproc) ${UNKNOWN} $(A)'") == expected


def test_everything_the_engine_cannot_do_is_told_at_once_with_its_field() -> None:
    source = model.Source(src="s3://a", path="/b")
    descriptor = model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        hardware=model.Hardware(strategy=model.Strategy.HOROVOD, cpu_affinity=(1,)),
        ml=model.MachineLearning(script=model.Script(script="a.tar"), args="x"),
        data=model.Data(sources=(source,)),
        server=model.Server(
            env=model.ServerEnvironment(ports=(), start_command=""), models=(source,)
        ),
    )
    assert [line.partition(":")[0] for line in obstacles(descriptor, IMAGES)] == [
        "hardware.strategy",
        "env.docker_image",
        "ml.args",
        "ml.script",
        "data.sources",
        "server.models",
        "hardware.cpu_affinity",
    ]


@pytest.mark.parametrize("code", ["", "  \n"])
def test_a_process_needs_a_command(code: str) -> None:
    (line,) = obstacles(described(code, "--fast"))
    assert line.startswith("ml.benchmark_code: the engine 'process' runs no images")


def test_a_command_that_is_empty_after_all_is_refused() -> None:
    (line,) = obstacles(described("$(EMPTY) x", variables={"EMPTY": ""}))
    assert line == "ml.benchmark_code: the command is empty"


def test_a_strategy_no_engine_runs_yet_is_said_to_come_later() -> None:
    everything = Capabilities(
        name="all", strategies=frozenset(model.Strategy), needs_image=False, honours_affinity=True
    )
    descriptor = model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d"),
        hardware=model.Hardware(strategy=model.Strategy.MXNET_PARAMETER_SERVER),
        ml=model.MachineLearning(benchmark_code="#!/bin/sh\ndon't"),
    )
    (line,) = obstacles(descriptor, everything)
    assert line.endswith("is not possible yet, only single_node")
