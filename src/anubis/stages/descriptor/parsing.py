"""The stage's entrance: a document in, a descriptor out, or all that is wrong with it."""

from __future__ import annotations

import dataclasses

from anubis.domain.descriptor import Descriptor
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.domain.problem import Problem
from anubis.stages.descriptor import reading
from anubis.stages.descriptor.grammar import DESCRIPTOR
from anubis.stages.descriptor.layout import ROOT
from anubis.stages.descriptor.reporting import Place, Report
from anubis.stages.descriptor.walking import homes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """A valid descriptor, and what should be written differently in its document."""

    descriptor: Descriptor
    warnings: tuple[Problem, ...] = ()


def parse(document: Document) -> Parsed:
    """Read a document. Pure, and quick enough to be called anywhere.

    Raises DescriptorInvalid with every problem, in the order of the file, and nothing else.
    """
    values, layout = reading.read(document)
    report = Report(document.name, layout, homes())
    descriptor = DESCRIPTOR.read(values, Place(path=ROOT, report=report))
    if report.has_errors:
        raise DescriptorInvalid(report.errors)
    assert isinstance(descriptor, Descriptor)
    return Parsed(descriptor=descriptor, warnings=report.warnings)
