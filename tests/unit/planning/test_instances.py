"""The table of instance types: whole, sane, and right where we know it from elsewhere."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.stages.planning import instances
from anubis.stages.planning.instances import Instance

EVERY = list(instances.names())
GIB = 2**30

ORIGINAL_GPUS = {
    "p2.16xlarge": 16,
    "p2.8xlarge": 8,
    "p3.16xlarge": 8,
    "p3dn.24xlarge": 8,
    "g2.8xlarge": 4,
    "g3.16xlarge": 4,
    "p3.8xlarge": 4,
    "g3.8xlarge": 2,
    "g2.2xlarge": 1,
    "g3.4xlarge": 1,
    "g3s.xlarge": 1,
    "p2.xlarge": 1,
    "p3.2xlarge": 1,
}
"""All that the original's table had."""

PROPORTIONAL = re.compile(r"([cmr][5-9]|x2gd|x2ie|x8|z1d|i[478]|im4|is4)")
"""Families whose sizes all have the same memory for a CPU."""


def known(name: str) -> Instance:
    found = instances.find(name)
    assert found is not None, name
    return found


def family(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("name", ORIGINAL_GPUS)
def test_the_gpus_of_the_original_are_known(name: str) -> None:
    assert known(name).gpus == known(name).nvidia_gpus == ORIGINAL_GPUS[name]


def test_only_families_of_the_original_with_gpus_have_any_among_those_it_had() -> None:
    """It knew the generations before 2020; of those, nothing else has GPUs."""
    older = re.compile(
        r"(t[123]a?|[mcr][1-5][adn]*|i[23](en)?|d2|h1|x1e?|z1d|f1|a1|p[23](dn)?|g[23]s?)"
    )
    having = {name for name in EVERY if older.fullmatch(family(name)) and known(name).gpus}
    assert having == set(ORIGINAL_GPUS)


@pytest.mark.parametrize(
    ("name", "vcpus", "gib", "gpus", "model"),
    [
        ("t2.micro", 1, 1, 0, ""),
        ("t3.medium", 2, 4, 0, ""),
        ("m4.10xlarge", 40, 160, 0, ""),
        ("c4.8xlarge", 36, 60, 0, ""),
        ("c5.18xlarge", 72, 144, 0, ""),
        ("c5n.9xlarge", 36, 96, 0, ""),
        ("r5.24xlarge", 96, 768, 0, ""),
        ("m6i.32xlarge", 128, 512, 0, ""),
        ("m7g.16xlarge", 64, 256, 0, ""),
        ("c7a.48xlarge", 192, 384, 0, ""),
        ("m7i-flex.8xlarge", 32, 128, 0, ""),
        ("r7iz.metal-16xl", 64, 512, 0, ""),
        ("m8g.metal-48xl", 192, 768, 0, ""),
        ("c8i.96xlarge", 384, 768, 0, ""),
        ("x1e.32xlarge", 128, 3904, 0, ""),
        ("u-6tb1.56xlarge", 224, 6144, 0, ""),
        ("z1d.metal", 48, 384, 0, ""),
        ("i3.metal", 72, 512, 0, ""),
        ("hpc7g.4xlarge", 16, 128, 0, ""),
        ("inf2.24xlarge", 96, 384, 0, ""),
        ("trn2.48xlarge", 192, 2048, 0, ""),
        ("dl1.24xlarge", 96, 768, 0, ""),
        ("g4dn.12xlarge", 48, 192, 4, "NVIDIA T4"),
        ("g4ad.16xlarge", 64, 256, 4, "AMD Radeon Pro V520"),
        ("g5.48xlarge", 192, 768, 8, "NVIDIA A10G"),
        ("g6e.12xlarge", 48, 384, 4, "NVIDIA L40S"),
        ("gr6.8xlarge", 32, 256, 1, "NVIDIA L4"),
        ("p4d.24xlarge", 96, 1152, 8, "NVIDIA A100 40GB"),
        ("p5.4xlarge", 16, 256, 1, "NVIDIA H100"),
        ("p5en.48xlarge", 192, 2048, 8, "NVIDIA H200"),
        ("p6-b200.48xlarge", 192, 2048, 8, "NVIDIA B200"),
    ],
)
def test_types_that_we_know_from_elsewhere_are_right(
    name: str, vcpus: int, gib: float, gpus: int, model: str
) -> None:
    found = known(name)
    assert (found.vcpus, found.memory_gib, found.gpus, found.gpu_model) == (
        vcpus,
        gib,
        gpus,
        model,
    )


def test_the_table_is_large_and_has_no_type_twice() -> None:
    assert len(EVERY) > 1_300
    assert len(EVERY) == len(set(EVERY))


def test_every_type_has_cpus_and_memory_of_a_sane_size() -> None:
    for name in EVERY:
        found = known(name)
        assert found.name == name
        assert 1 <= found.vcpus <= 2_000
        assert 0.5 <= found.memory_gib <= 32_768
        assert 0.2 <= found.memory_gib / found.vcpus <= 64, name
        assert 0 <= found.gpus <= 16


def test_whoever_has_gpus_says_of_which_make_and_nobody_else_does() -> None:
    for name in EVERY:
        assert bool(known(name).gpus) == bool(known(name).gpu_model), name


def test_larger_sizes_of_a_family_have_no_less() -> None:
    for name, after in itertools.pairwise(EVERY):
        if family(name) == family(after) and "metal" not in after:
            assert known(after).vcpus >= known(name).vcpus, after
            assert known(after).memory_gib >= known(name).memory_gib, after


def test_sizes_say_the_cpus_where_names_are_regular() -> None:
    for name in EVERY:
        size = re.fullmatch(r"[cmrxi][5-9][^.]*\.(?:metal-)?(\d*)x(?:large|l)", name)
        if size:
            assert known(name).vcpus == 4 * int(size[1] or 1), name


def test_a_family_has_the_same_memory_for_each_cpu_where_it_is_known_to() -> None:
    ratios: dict[str, set[float]] = {}
    for name in EVERY:
        if PROPORTIONAL.match(family(name)) and family(name) != "c5n":
            found = known(name)
            ratios.setdefault(family(name), set()).add(found.memory_gib / found.vcpus)
    assert len(ratios) > 100
    assert {name: found for name, found in ratios.items() if len(found) > 1} == {}


def test_names_of_sagemaker_mean_the_same_machines() -> None:
    assert instances.find("ml.p4d.24xlarge") == instances.find("p4d.24xlarge")


@pytest.mark.parametrize("name", ["", "local", "g99.large", "p3.3xlarge", "ml.", "m5", "m5.", "."])
def test_what_is_not_known_is_no_error(name: str) -> None:
    assert instances.find(name) is None


@given(st.text())
def test_no_text_is_an_error(name: str) -> None:
    found = instances.find(name)
    assert found is None or found.name in EVERY


def test_a_program_can_ask_for_less_than_the_machine_has_and_mostly_for_more_than_half() -> None:
    for name in EVERY:
        found = known(name)
        cpus, memory = found.cpus_for_programs, found.bytes_for_programs
        assert cpus is None or 0 < cpus < found.vcpus
        assert memory is None or 0 < memory < found.memory_bytes
        if found.vcpus >= 2:
            assert cpus is not None
            assert cpus > found.vcpus / 2
        if found.memory_gib >= 6 and found.memory_gib / found.vcpus >= 2:
            assert memory is not None
            assert memory > found.memory_bytes / 2, name


@pytest.mark.parametrize(
    ("name", "cpus", "gib"),
    [
        ("t3.small", 1.4, None),  # too small for what EKS keeps in the worst case
        ("m5.large", 1.4, 5.37),
        ("p3.2xlarge", 7.4, 54.4),
        ("p4d.24xlarge", 95.1, 1056.8),
    ],
)
def test_what_is_kept_for_the_machine_is_as_documented(
    name: str, cpus: float, gib: float | None
) -> None:
    found = known(name)
    assert found.cpus_for_programs == cpus
    memory = found.bytes_for_programs
    assert (memory and round(memory / GIB, 2)) == (gib and pytest.approx(gib, abs=0.05))


@pytest.mark.parametrize(
    ("size", "cpus", "mib"),
    [
        ("large", 1.83, 6803),
        ("xlarge", 3.82, 14062),
        ("2xlarge", 7.81, 29217),
        ("4xlarge", 15.79, 57591),
        ("8xlarge", 31.75, 118212),
        ("12xlarge", 47.71, 178833),
        ("16xlarge", 63.67, 233921),
        ("24xlarge", 95.59, 355162),
    ],
)
def test_what_nodes_of_eks_have_to_give_is_enough(size: str, cpus: float, mib: int) -> None:
    """Allocatable of the m5 family: aws/karpenter-provider-aws, issue 2158."""
    found = known(f"m5.{size}")
    daemons = 0.3, 400  # CPUs and MiB that others on the node can have asked for
    assert (found.cpus_for_programs or 0) <= cpus - daemons[0]
    assert (found.bytes_for_programs or 0) / 2**20 <= mib - daemons[1]
