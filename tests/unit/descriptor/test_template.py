"""The template is valid, and does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import re2

from anubis.domain.descriptor import benchmark_name
from anubis.domain.document import Document
from anubis.ports.engine import Capabilities
from anubis.stages.descriptor.parsing import parse
from anubis.stages.descriptor.template import template
from anubis.stages.planning.planning import Context, plan

PROCESS = Capabilities(
    name="process",
    strategies=frozenset({"single_node"}),
    needs_image=False,
    honours_affinity=True,
)


def document(text: str) -> Document:
    return Document(name="new.toml", directory="", content=text.encode())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("resnet", "resnet"),
        ("My first “benchmark”!", "My-first-benchmark"),
        ("", "my-benchmark"),
        ("..\n--", "my-benchmark"),
        ('"]\nx = 1', "x-1"),
        ("@NAME@", "NAME"),
        ("a" * 62 + "-b", "a" * 62),
    ],
)
def test_the_template_is_valid_whatever_the_name(name: str, label: str) -> None:
    new = document(template(name))
    parsed = parse(new)
    assert parsed.warnings == ()
    assert benchmark_name(parsed.descriptor, new) == label


def test_the_template_is_valid_with_all_its_suggestions() -> None:
    text = re.sub(r"^#: ", "", template("all"), flags=re.MULTILINE)
    assert "#:" not in text.partition("\n\n")[2]
    assert parse(document(text)).warnings == ()


def test_the_template_runs_and_reports_its_metrics() -> None:
    descriptor = parse(document(template("new"))).descriptor
    context = Context(directory="", environment={}, python=sys.executable)
    (unit,) = plan(descriptor, PROCESS, context).units
    environment = {**os.environ, **unit.environment}
    ran = subprocess.run(unit.command, env=environment, capture_output=True, text=True, check=True)
    found = {
        metric.name: [float(value) for value in re2.findall(metric.pattern, ran.stdout)]
        for metric in descriptor.output.metrics
    }
    assert found["step"] == [1, 2, 3, 4, 5]
    assert len(found["seconds"]) == 5
