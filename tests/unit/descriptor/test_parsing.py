"""Documents become descriptors, whichever of the known spellings they use."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.domain import descriptor as model
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.domain.plan import Limits
from anubis.domain.problem import Severity
from anubis.domain.schedule import CatchUp, Overlap
from anubis.stages.descriptor.parsing import Parsed, parse

DOCUMENTS = Path(__file__).parent / "documents"
HEAD = 'spec_version = "0.1.0"\ninfo.description = "d"\n'


def parsed(text: str | bytes, name: str = "d.toml") -> Parsed:
    content = text.encode() if isinstance(text, str) else text
    return parse(Document(name=name, directory="", content=content))


def described(tail: str) -> model.Descriptor:
    return parsed(HEAD + tail).descriptor


def stored(name: str) -> Parsed:
    return parsed((DOCUMENTS / name).read_bytes(), name)


def test_the_smallest_descriptor_has_a_version_and_a_description() -> None:
    result = parsed(HEAD)
    assert result.warnings == ()
    assert result.descriptor == model.Descriptor(
        spec_version="0.1.0", info=model.Info(description="d")
    )


def test_the_documented_training_example_is_understood() -> None:
    result = stored("documented_training.toml")
    assert result.descriptor.info.description == " Full job description."
    assert result.descriptor.hardware.strategy is model.Strategy.HOROVOD
    assert result.descriptor.hardware.distributed.num_instances == 3
    assert [source.src for source in result.descriptor.data.sources] == [
        "s3://bucket/imagenet/train",
        "s3://bucket/imagenet/validation",
    ]
    assert result.descriptor.output.metrics[0].pattern == r"accuracy=([-+]?\d*\.\d+|\d+)"
    assert [(warning.field, warning.severity) for warning in result.warnings] == [
        ("info.task_name", Severity.DEPRECATION),
        ("data.sources[0].uri", Severity.DEPRECATION),
        ("data.sources[1].uri", Severity.DEPRECATION),
    ]


def test_the_documented_inference_example_is_understood() -> None:
    result = stored("documented_inference.toml")
    server = result.descriptor.server
    assert server is not None
    assert server.env.ports == (8080, 8081)
    assert server.env.liveness_probe == model.Probe(path="/iamhere", port=8080)
    assert server.env.readiness_probe == model.Probe(path="/iamok", port=8081)
    assert dict(server.env.vars) == {"VAR1": "value1", "VAR2": "value2"}
    assert [warning.field for warning in result.warnings] == [
        "info.task_name",
        "server.env.liveliness_probe",
        "server.env.liveliness_probe",
        "server.env.readiness_probe",
    ]


def test_every_key_reaches_the_model() -> None:
    result = stored("everything.toml")
    assert result.warnings == ()
    default = model.Descriptor(spec_version="", info=model.Info(description=""))
    for name, value in vars_of(result.descriptor).items():
        assert value != vars_of(default)[name], name


def vars_of(descriptor: model.Descriptor) -> dict[str, object]:
    """The values of all sections that the document sets away from their defaults."""
    sections = {
        field.name: getattr(descriptor, field.name) for field in dataclasses.fields(descriptor)
    }
    return {
        f"{name}.{field.name}": getattr(value, field.name)
        for name, value in sections.items()
        if dataclasses.is_dataclass(value) and not isinstance(value, model.Server)
        for field in dataclasses.fields(value)
        if (name, field.name) not in {("info", "task_name"), ("custom_params", "python_version")}
    }


def test_the_values_of_every_notation_are_normalised() -> None:
    descriptor = stored("everything.toml").descriptor
    assert descriptor.hardware.cpu_affinity == (0, 1, 2, 3, 6)
    assert descriptor.hardware.distributed.processes_per_instance == "gpus"
    assert descriptor.server is not None
    assert descriptor.server.hardware.cpu_affinity == (5, 7)
    assert descriptor.limits == Limits(
        fetching=timedelta(minutes=1),
        queued=timedelta(hours=36),
        capacity=timedelta(minutes=5),
        pulling=timedelta(minutes=20),
        starting=timedelta(seconds=1.5),
        readiness=timedelta(seconds=90),
        running=timedelta(hours=2),
        finishing=timedelta(minutes=15),
        grace=timedelta(0),
        output_bytes=3 * 2**29,
        concurrency=2,
    )
    hardware = descriptor.hardware
    asked = (hardware.cpus, hardware.memory_bytes, hardware.gpus, hardware.exclusive)
    assert asked == (2.5, 4 * 2**30, 1, True)
    served = descriptor.server.hardware
    assert (served.cpus, served.memory_bytes, served.gpus) == (1.0, 2**30, 2)
    assert dict(descriptor.env.ulimits) == {"memlock": -1, "nofile": 65536}
    assert dict(descriptor.server.env.ulimits) == {"core": 0}
    assert [source.unpack for source in descriptor.data.sources] == [True]
    assert descriptor.info.priority == -5
    assert descriptor.custom_params.hyper_params["layers"] == ({"width": 10}, {"width": 20})


def test_a_descriptor_cannot_be_changed() -> None:
    descriptor = stored("everything.toml").descriptor
    with pytest.raises(dataclasses.FrozenInstanceError):
        descriptor.env.privileged = False  # type: ignore[misc]  # the point of the test
    with pytest.raises(TypeError):
        descriptor.env.vars["A"] = "2"  # type: ignore[index]  # the point of the test
    with pytest.raises(TypeError):
        descriptor.custom_params.hyper_params["layers"][0]["width"] = 1  # type: ignore[index]  # the point of the test


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ('[hardware]\nstrategy = "client_server"', '[hardware]\nstrategy = "inference"'),
        ('[[data.sources]]\nuri = "a"\npath = "b"', '[[data.sources]]\nsrc = "a"\npath = "b"'),
        ('info.scheduling = "0 0 ? * 1"', 'info.scheduling = "0 0 * * 1"'),
        (
            'server.env.readiness_probe = {path = "/", timout_seconds = 7}',
            'server.env.readiness_probe = {path = "/", timeout_seconds = 7}',
        ),
        (
            'server.env.liveliness_probe = "https://localhost/a?b=c"',
            'server.env.liveness_probe = {scheme = "https", path = "/a?b=c"}',
        ),
    ],
)
def test_an_older_spelling_means_the_same_and_is_noted(older: str, newer: str) -> None:
    server = '\nserver.env.ports = [1]\nserver.env.start_command = ""\n'
    before, after = (parsed(HEAD + server + text) for text in (older, newer))
    assert before.descriptor == after.descriptor
    assert after.warnings == ()
    assert {warning.severity for warning in before.warnings} == {Severity.DEPRECATION}


@pytest.mark.parametrize(
    ("scheduling", "meaning"),
    [
        ("single_run", "single_run"),
        ("@daily", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("*/5 * * * *", "*/5 * * * *"),
        ("0 0 1-5 * MON", "0 0 1-5 * MON"),
        ("0  12 1,15 jan *", "0 12 1,15 jan *"),
    ],
)
def test_schedules_are_cron(scheduling: str, meaning: str) -> None:
    result = parsed(f'{HEAD}info.scheduling = "{scheduling}"')
    assert result.descriptor.info.scheduling == meaning
    assert result.warnings == ()


def test_a_schedule_says_where_its_hours_are_and_what_it_does_about_others() -> None:
    assert parsed(f"{HEAD}info.scheduling = '@daily'").descriptor.schedule == model.Recurrence()
    schedule = stored("everything.toml").descriptor.schedule
    assert schedule == model.Recurrence(
        time_zone="Europe/Berlin", overlap=Overlap.QUEUE, catch_up=CatchUp.ALL
    )


@pytest.mark.parametrize("text", ["4", '"4"', '" +4 "'])
def test_processes_per_instance_may_be_a_number_or_text(text: str) -> None:
    hardware = described(f"hardware.distributed.processes_per_instance = {text}").hardware
    assert hardware.distributed.processes_per_instance == 4


@pytest.mark.parametrize(
    "tail",
    [
        'data.sources = [{src = "a", path = "b", md5 = ""}]',
        'ml.framework = ""',
        'ml = {framework = "", framework_version = ""}',
        'info.labels = {a = ""}',
        "[data]",
        "[output]",
        "output.metrics = []",
        'env.docker_image = ""',
        'hardware.strategy = "mxnet_parameter_server"',
        "[hardware]\n[env]\n[ml]\n[server.env]\nports = []\nstart_command = ''",
        "hardware.distributed = {}",
        "x-mine = 1979-05-27\n[info.x-more]\ny = 1",
    ],
)
def test_what_the_original_took_or_documented_is_taken_without_a_note(tail: str) -> None:
    assert parsed(HEAD + tail).warnings == ()


def test_a_checksum_that_cannot_be_one_is_taken_with_a_note() -> None:
    result = parsed(HEAD + 'data.sources = [{src = "a", path = "b", md5 = "42"}]')
    assert result.descriptor.data.sources[0].md5 == "42"
    (warning,) = result.warnings
    assert (warning.field, warning.line, warning.column) == ("data.sources[0].md5", 3, 47)


def test_a_horovod_script_may_have_any_quotes() -> None:
    tail = 'hardware.strategy = "horovod"\nml.benchmark_code = "#!/bin/sh\\n# don\'t"'
    assert described(tail).ml.benchmark_code.endswith("don't")
    with pytest.raises(DescriptorInvalid):
        described('ml.benchmark_code = "don\'t"')


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_byte_order_marks_and_line_ends_of_windows_change_nothing(
    newline: str, mark: bytes
) -> None:
    text = (HEAD + "[info.labels]\nü = 1\n").replace("\n", newline)
    with pytest.raises(DescriptorInvalid) as caught:
        parsed(mark + text.encode())
    # "ü" is no bare key: a syntax error, at its place.
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [(4, 1)]


@pytest.mark.parametrize(
    ("tail", "name", "directory", "benchmark"),
    [
        ('info.labels = {task_name = "label"}\ninfo.task_name = "older"', "f.toml", "", "label"),
        ('info.labels = {task_name = ""}\ninfo.task_name = "older one"', "f.toml", "", "older one"),
        ("", "resnet.v2.toml", "/x", "resnet.v2"),
        ("", "folder/resnet.toml", "", "resnet"),
        ("", "descriptor.toml", "/samples/hello-world/", "hello-world"),
        ("", "hello-world/descriptor.toml", "", "hello-world"),
        ("", "descriptor.toml", "", "descriptor"),
        ("", "", "", "benchmark"),
    ],
)
def test_a_benchmark_is_named_by_its_label_or_else_by_its_file(
    tail: str, name: str, directory: str, benchmark: str
) -> None:
    document = Document(name=name, directory=directory, content=(HEAD + tail).encode())
    assert model.benchmark_name(parse(document).descriptor, document) == benchmark
