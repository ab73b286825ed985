"""What the process engine can do, for those who ask before there is an engine."""

from __future__ import annotations

from anubis.ports.engine import Capabilities

PROCESS = Capabilities(
    name="process",
    strategies=frozenset({"single_node", "inference", "horovod", "mxnet_parameter_server"}),
    needs_image=False,
    honours_affinity=True,
)
