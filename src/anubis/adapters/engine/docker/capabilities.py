"""What the Docker engine can do, for those who ask before there is an engine."""

from __future__ import annotations

from anubis.ports.engine import Capabilities

DOCKER = Capabilities(
    name="docker",
    strategies=frozenset({"single_node", "inference", "horovod", "mxnet_parameter_server"}),
    needs_image=True,
    honours_affinity=True,
    honours_niceness=False,
    isolates=True,
)
