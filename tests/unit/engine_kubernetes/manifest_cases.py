"""Plans of all kinds, and the objects that they become: for the tests that look at those."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.adapters.engine.kubernetes.manifests import obstacles, workloads
from anubis.adapters.engine.kubernetes.manifests.site import Brought, Carried, Site
from anubis.domain import blanks
from anubis.domain import plan as plans
from anubis.domain.document import Document
from anubis.domain.plan import (
    Fetch,
    Limits,
    Mount,
    Placement,
    Plan,
    Probe,
    ProbeKind,
    Resources,
    Toleration,
    Unit,
)
from anubis.domain.run import RunId
from anubis.stages.descriptor.parsing import parse
from anubis.stages.planning.planning import Context, plan

ROOT: Final = Path(__file__).parents[3]
RUN: Final = RunId("018f0000-0000-7000-8000-0123456789ab")
SCHEDULE: Final = "018e0000-0000-7000-8000-0123456789ab"
KEYS: Final = {
    name: f"made for each run: {name}\n" for name in ("id", "id.pub", "host", "host.pub")
}
SITE: Final = Site(namespace="benchmarks", installation="a1b2c3d4", image="anubis:test")

DESCRIPTORS: Final[Mapping[str, Path]] = {
    **{f"sample-{path.parent.name}": path for path in ROOT.glob("samples/*/descriptor.toml")},
    **{path.stem: path for path in ROOT.glob("tests/unit/planning/golden/*.toml")},
}


def descriptor_plan(path: Path) -> Plan:
    """The plan of a descriptor. Raises UserError where Kubernetes cannot do it."""
    document = Document(name=path.name, directory="/here", content=path.read_bytes())
    code = "code.tar" if path.parent.name == "script-mode" else ""
    context = Context(directory="/here", environment={}, python="python3", script=code)
    return plan(parse(document).descriptor, KUBERNETES, context)


def everything() -> Plan:
    """A plan that asks for all that Kubernetes can do."""
    unit = Unit(
        name="benchmark",
        command=("sh", "-c", 'echo "$HOME" $(date) $$ $$(X)'),
        environment={"COST": "5$", "REFERENCE": "$(HOME)"},
        directory="/work",
        image="registry.example/team/train:1",
        script="code.tar",
        mounts=(
            Mount(source=blanks.SCRIPTS, target="/bai/scripts", read_only=False),
            Mount(source=blanks.data(0), target="/data/train"),
            Mount(source=blanks.data(1), target="/data/labels.csv"),
        ),
        resources=Resources(cpus=1.5, memory_bytes=4 * 1024**3, gpus=2, privileged=True),
        ports=(8080, 8081),
        readiness=Probe(
            kind=ProbeKind.HTTPS, port=8080, path="/ready", period=timedelta(seconds=0.5)
        ),
        liveness=Probe(kind=ProbeKind.TCP, port=8081),
        placement=Placement(
            instance_type="p4d.24xlarge",
            zone="eu-west-1a",
            exclusive=True,
            node_selector={"disk": "nvme"},
            tolerations=(
                Toleration(key="team", value="ml", effect="NoSchedule"),
                Toleration(operator="Exists", effect="NoExecute"),
            ),
            annotations={"iam.amazonaws.com/role": "benchmark-host"},
            service_account="trainer",
            pull_secrets=("registry",),
            priority_class="low",
            runtime_class="nvidia",
        ),
    )
    return Plan(
        units=(unit,),
        deciding="benchmark",
        limits=Limits(running=timedelta(minutes=90)),
        fetches=(
            Fetch(uri="s3://bucket/train.tar", unpack=True),
            Fetch(uri="/here/labels.csv", checksum="md5:d41d8cd98f00b204e9800998ecf8427e"),
        ),
        labels={"task_name": "Träning 1", "app": "other", "created-by": "me"},
        submitter="ada@example.org",
        schedule=SCHEDULE,
    )


def requested() -> Plan:
    """A plan that must find room, but has no limits."""
    unit = Unit(
        name="benchmark",
        command=(),
        arguments=("--fast",),
        environment={},
        image="train:1",
        resources=Resources(requested_cpus=7.5, requested_memory_bytes=2**34, extended_shm=False),
    )
    return Plan(units=(unit,), deciding="benchmark", limits=Limits())


def brought(made: Plan) -> Brought:
    """What an engine would bring for a plan: all code, and data that is only on its machine."""
    here = [number for number, one in enumerate(made.fetches) if one.uri.startswith("/")]
    return Brought(
        keys=KEYS if made.needs_keys else {},
        scripts={name: b"code of " + name.encode() for name in plans.scripts(made)},
        data={
            number: Carried(
                name=made.fetches[number].uri.rpartition("/")[2], content=b"of this machine"
            )
            for number in here
        },
    )


def objects(made: Plan, site: Site = SITE) -> workloads.Workloads:
    """What such a plan becomes."""
    assert obstacles.obstacles(made, brought(made)) == []
    return workloads.objects(site, RUN, made, brought(made))
