"""What the Kubernetes engine can do, for those who ask before there is an engine."""

from __future__ import annotations

from anubis.ports.engine import Capabilities

KUBERNETES = Capabilities(
    name="kubernetes",
    strategies=frozenset({"single_node", "inference", "horovod", "mxnet_parameter_server"}),
    needs_image=True,
    honours_affinity=False,
    honours_niceness=False,
    honours_ulimits=False,
    takes_any_variable=False,
    isolates=True,
    brings=True,
    has_machines=True,
)
