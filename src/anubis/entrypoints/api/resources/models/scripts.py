"""Archives of code that is submitted beside descriptors."""

from __future__ import annotations

from anubis.entrypoints.api.resources.models.kinds import Answer


class Script(Answer):
    """An archive that is here."""

    name: str
    """What the `script` of a submission is to be."""
