"""Whatever is in a file, the answer is a model or a report, and nothing else ever."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anubis.domain import descriptor as model
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.stages.descriptor.parsing import Parsed, parse
from anubis.stages.descriptor.schema import json_schema

SEEDS = [path.read_bytes() for path in (Path(__file__).parent / "documents").glob("*.toml")]
TREES = [tomllib.loads(seed.decode()) for seed in SEEDS]
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def outcome(content: bytes) -> Parsed | None:
    """What became of a document; every problem must be in words and inside the file."""
    try:
        parsed = parse(Document(name="f.toml", directory="", content=content))
    except DescriptorInvalid as invalid:
        check_places(content, invalid.problems)
        return None
    check_places(content, parsed.warnings)
    return parsed


def check_places(content: bytes, problems: Any) -> None:
    lines = content.decode("utf-8-sig", "replace").split("\n")
    for problem in problems:
        assert 1 <= problem.line <= len(lines), problem
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1, problem
        assert problem.found, problem
        assert problem.expected, problem
        assert str(problem).isprintable(), problem


# Values, written back as TOML: JSON's notation of texts is TOML's, but for what JSON leaves raw.


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)} = {written(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value) if isinstance(value, int | float) else value.isoformat()


def document(tree: dict[str, Any]) -> bytes:
    return "\n".join(f"{written(key)} = {written(value)}" for key, value in tree.items()).encode()


Strategies = dict[str, st.SearchStrategy[Any]]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
filled = texts.filter(str.strip)
commands = st.lists(st.sampled_from(["a", "'b c'", "$(X)", "--d=1"]), max_size=3).map(" ".join)
labels = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True)
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]+)?", fullmatch=True)
tolerations = st.one_of(
    st.fixed_dictionaries(
        {"key": labels}, optional={"value": labels, "effect": st.sampled_from(["", "NoExecute"])}
    ),
    st.fixed_dictionaries({"operator": st.just("Exists")}, optional={"key": labels}),
)
variables = st.dictionaries(texts.filter(lambda name: name and "=" not in name), texts, max_size=3)
durations = st.one_of(
    st.integers(1, 10**6),
    st.floats(0.01, 10**6),
    st.sampled_from(["90s", "15m", " 2h ", "1d", "1h30m", "1.5 h", "250ms"]),
)
sizes = st.one_of(st.integers(1, 2**62), st.sampled_from(["500MB", "10GiB", "1.5 tb", "7", "1kib"]))
cpus = st.one_of(
    st.lists(st.integers(0, 100), max_size=5), st.sampled_from(["", "0", "0-3,6", " 1 , 4 - 5 "])
)
ports = st.integers(1, 65535)
schedules = st.sampled_from(
    ["single_run", "@daily", "*/5 * * * *", "0 0 1-5 * MON", "? ? ? ? ?", "0 3 1,15 JAN *"]
)
zones: Strategies = {"instance_type": texts, "aws_zone_id": texts, "availability_zone": texts}
shares: Strategies = {"cpu_affinity": cpus, "niceness": st.integers(-20, 19)}
surroundings: Strategies = {
    "docker_image": texts,
    "privileged": st.booleans(),
    "extended_shm": st.booleans(),
    "vars": variables,
}
sources = st.lists(
    st.fixed_dictionaries({"src": filled, "path": filled}, optional={"md5": texts, "id": texts})
    | st.fixed_dictionaries({"uri": filled, "path": filled}),
    max_size=2,
)
metrics = st.lists(
    st.fixed_dictionaries(
        {
            "name": filled,
            "units": texts,
            "pattern": st.sampled_from([r"a=(\d+)", r"\S+", "(?:a|b)(?P<n>c)"]),
        }
    ),
    max_size=3,
    unique_by=lambda metric: metric["name"],
)
outputs = st.fixed_dictionaries({}, optional={"metrics": metrics})
probes = st.one_of(
    st.sampled_from(["http://localhost:8080/x", "https://a/b?c=d"]),
    st.fixed_dictionaries(
        {"path": filled, "port": ports},
        optional={
            "scheme": st.sampled_from(["http", "https", "HTTP"]),
            "initial_delay_seconds": st.integers(0, 99),
            "period_seconds": st.integers(1, 99),
            "timout_seconds": st.integers(1, 99),
            "success_threshold": st.integers(1, 99),
            "failure_threshold": st.integers(1, 99),
        },
    ),
)
started: Strategies = {
    "ports": st.lists(ports, min_size=1, max_size=3),
    "start_command": commands,
}
served: Strategies = {
    **surroundings,
    "start_command_args": commands,
    "readiness_probe": probes,
    "liveliness_probe": probes,
}
placed: Strategies = {**zones, **shares}
servers: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"env": st.fixed_dictionaries(started, optional=served)},
    optional={
        "hardware": st.fixed_dictionaries({}, optional=placed),
        "models": sources,
        "output": outputs,
    },
)
scalars = st.one_of(
    texts,
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False),
    st.booleans(),
    st.dates(),
    st.times(),
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=6
)
descriptors = st.fixed_dictionaries(
    {
        "spec_version": texts,
        "info": st.fixed_dictionaries(
            {"description": texts},
            optional={
                "task_name": texts,
                "scheduling": schedules,
                "execution_engine": st.sampled_from([e.value for e in model.ExecutionEngine]),
                "labels": st.dictionaries(labels, labels | st.just(""), max_size=3),
                "x-own": trees,
            },
        ),
        "server": servers,
    },
    optional={
        "hardware": st.fixed_dictionaries(
            {},
            optional={
                **zones,
                **shares,
                "strategy": st.sampled_from([*(s.value for s in model.Strategy), "client_server"]),
                "distributed": st.fixed_dictionaries(
                    {},
                    optional={
                        "num_instances": st.integers(1, 99),
                        "processes_per_instance": st.sampled_from([1, 8, "1", "16", "gpus"]),
                    },
                ),
            },
        ),
        "env": st.fixed_dictionaries({}, optional=surroundings),
        "ml": st.fixed_dictionaries(
            {"framework": st.sampled_from(["mxnet", "pytorch"])},
            optional={"benchmark_code": commands, "args": commands, "framework_version": texts},
        ),
        "data": st.fixed_dictionaries({}, optional={"sources": sources}),
        "output": outputs,
        "limits": st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(["fetching", "queued", "starting", "running"], durations),
                **dict.fromkeys(["finishing", "grace", "capacity", "pulling"], durations),
                "output_size": sizes,
            },
        ),
        "kubernetes": st.fixed_dictionaries(
            {},
            optional={
                "node_selector": st.dictionaries(labels, labels | st.just(""), max_size=3),
                "tolerations": st.lists(tolerations, max_size=2),
                "annotations": st.dictionaries(labels, texts, max_size=3),
                "service_account": names,
                "image_pull_secrets": st.lists(names, max_size=2),
                "priority_class": names,
                "runtime_class": names,
            },
        ),
        "custom_params": st.fixed_dictionaries(
            {}, optional={"hyper_params": st.dictionaries(texts, trees, max_size=3)}
        ),
        "x-own": trees,
    },
)


@given(descriptors)
@settings(max_examples=150, deadline=None)
def test_a_valid_descriptor_is_read_and_the_schema_agrees(tree: dict[str, Any]) -> None:
    content = document(tree)
    parsed = parse(Document(name="f.toml", directory="", content=content))
    assert parsed.descriptor.spec_version == tree["spec_version"]
    assert len(parsed.descriptor.output.metrics) == len(tree.get("output", {}).get("metrics", []))
    check_places(content, parsed.warnings)
    VALIDATOR.validate(tomllib.loads(content.decode()))


@given(descriptors)
@settings(max_examples=50, deadline=None)
def test_reading_twice_gives_equal_descriptors(tree: dict[str, Any]) -> None:
    assert outcome(document(tree)) == outcome(document(tree))


edits = st.tuples(
    st.integers(0, 10**6),
    st.integers(0, 4),
    st.one_of(st.binary(max_size=3), st.sampled_from([b'"', b"'", b"[", b"{", b"\n", b"=", b"."])),
)


@given(st.sampled_from(SEEDS), st.lists(edits, min_size=1, max_size=4))
@settings(max_examples=400, deadline=None)
def test_edited_bytes_give_a_model_or_a_report(
    seed: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    content = bytearray(seed)
    for at, length, new in changes:
        start = at % (len(content) + 1)
        content[start : start + length] = new
    outcome(bytes(content))


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf\xff")
@example(b"\r")
@example(b"a = 1\r\n\xff")
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_a_report(content: bytes) -> None:
    assert outcome(content) is None


@given(st.text(st.sampled_from("[]{}=.,\"'#\\\n ax1-_é\t"), max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_mix_of_toml_characters_gives_a_report(text: str) -> None:
    assert outcome(text.encode()) is None


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    found = [path] if path else []
    for key, child in children:
        found.extend(paths(child, (*path, key)))
    return found


def changed(tree: Any, path: tuple[Any, ...], action: str, value: Any) -> Any:
    """The tree with one value replaced, removed or renamed."""
    head, *rest = path
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if rest:
        copy[head] = changed(tree[head], tuple(rest), action, value)
    elif action == "replace" or isinstance(copy, list):
        copy[head] = value
    else:
        old = copy.pop(head)
        if action == "rename":
            copy[head[:-1] + str(value)[:3]] = old
    return copy


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    tree = draw(st.sampled_from(TREES))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(paths(tree)))
        action = draw(st.sampled_from(["replace", "remove", "rename"]))
        tree = changed(tree, path, action, draw(trees))
    return document(tree)


@given(mutants())
@settings(max_examples=400, deadline=None)
def test_swapped_removed_and_renamed_values_give_a_model_or_a_report(content: bytes) -> None:
    outcome(content)
