"""Descriptors become exactly the plans that lie beside them.

After a change that is meant, ``REWRITE_GOLDEN=1 pytest tests/unit/planning`` writes them anew; then
read the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.domain import blanks
from anubis.domain import plan as plans
from anubis.domain.document import Document
from anubis.domain.errors import UserError
from anubis.ports.engine import Capabilities
from anubis.stages.descriptor.parsing import parse
from anubis.stages.planning.planning import Context, plan

GOLDEN = Path(__file__).parent / "golden"
STRATEGIES = frozenset({"single_node", "inference", "horovod", "mxnet_parameter_server"})
ENGINES = {
    "shared": Capabilities(
        name="process", strategies=STRATEGIES, needs_image=False, honours_affinity=True
    ),
    "isolated": Capabilities(
        name="docker",
        strategies=STRATEGIES,
        needs_image=True,
        honours_affinity=True,
        isolates=True,
    ),
    "cluster": KUBERNETES,
}


def planned(descriptor: Path, engine: Capabilities) -> str:
    """The plan as it is kept, laid out for readers; or why there is none."""
    document = Document(name=descriptor.name, directory="/here", content=descriptor.read_bytes())
    context = Context(
        directory="/here",
        environment={"HOME": "/home/me"},
        python="python3" if engine.needs_image else "/opt/python",
    )
    try:
        made = plan(parse(document).descriptor, engine, context)
    except UserError as error:
        return json.dumps({"obstacles": str(error).split("\n")}, indent=2) + "\n"
    text = plans.to_json(made)
    assert plans.from_json(text) == made
    shown = json.loads(text)
    return json.dumps(shown, indent=2, ensure_ascii=False).replace("\\u0000", "|") + "\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.toml")))
def test_a_descriptor_becomes_the_plan_that_lies_beside_it(name: str, engine: str) -> None:
    golden = GOLDEN / f"{name}.{engine}.json"
    found = planned(GOLDEN / f"{name}.toml", ENGINES[engine])
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(found, "utf-8")
    assert found == golden.read_text("utf-8")


def test_a_blank_is_written_between_bars_in_these_files() -> None:
    """NULs would make Git take the files for binary ones."""
    kept = (GOLDEN / "inference.shared.json").read_text("utf-8")
    assert blanks.port("server", 8080).replace("\0", "|") in kept
