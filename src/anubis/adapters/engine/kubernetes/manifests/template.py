"""Which unit a pod template is for: one, or several that differ in nothing but their number."""

from __future__ import annotations

import dataclasses

from anubis.adapters.engine.kubernetes.manifests import texts
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.domain.plan import Unit

INDEX_VARIABLE = "ANUBIS_POD_INDEX"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """A unit whose hosts and ports are filled in, and how its pods are told apart."""

    unit: Unit
    label: str  #: what ``naming.UNIT`` says on the pods: the unit, or what their names begin with
    index_label: str = ""  #: the label that tells the number of a pod; empty: there is only one

    @property
    def name(self) -> str:
        """The unit's own name, as Kubernetes is to be told it in a variable."""
        if not self.index_label:
            return texts.verbatim(self.unit.name)
        return f"{self.label}-{texts.variable(INDEX_VARIABLE)}"

    @property
    def index(self) -> list[Manifest]:
        """The variable that ``name`` needs before it."""
        if not self.index_label:
            return []
        field = {"fieldPath": f"metadata.labels['{self.index_label}']"}
        return [{"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": field}}]
