"""Sources that other distributions bring, by entry points of the group ``anubis.dataset_sources``.

The name of an entry point is the scheme; its object, called without arguments, gives the source.
Nothing of a distribution is imported before a URI of its scheme is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from anubis.domain.errors import DatasetInvalid
from anubis.ports.dataset_source import DatasetSource

if TYPE_CHECKING:
    import importlib.metadata

GROUP = "anubis.dataset_sources"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """A source that is installed, and not loaded."""

    scheme: str
    distribution: str  #: name and version, for messages
    entry: importlib.metadata.EntryPoint

    def load(self) -> DatasetSource:
        """Import it and make the source. Raises DatasetInvalid that names the distribution."""
        try:
            source = self.entry.load()()
        except Exception as error:  # foreign code may raise anything
            raise DatasetInvalid(
                f"the plug-in {self.distribution} for {self.scheme}:// cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not (hasattr(source, "list") and hasattr(source, "read")):
            raise DatasetInvalid(
                f"the plug-in {self.distribution} for {self.scheme}:// gave a "
                f"{type(source).__name__}, expected a source with the methods list and read"
            )
        return source  # type: ignore[no-any-return] # as far as can be seen from here


def plugins() -> Mapping[str, Plugin]:
    """All that are installed, by scheme. Looks through all distributions: some ten milliseconds.

    Raises DatasetInvalid if two distributions offer the same scheme.
    """
    # Not at the top: it costs a command that fetches nothing more than all of our own modules.
    import importlib.metadata

    found: dict[str, Plugin] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        plugin = _plugin(entry)
        other = found.setdefault(plugin.scheme, plugin)
        if other.entry.value != entry.value:
            raise DatasetInvalid(
                f"{plugin.distribution} and {other.distribution} both offer "
                f"{plugin.scheme}://; uninstall one of them"
            )
    return found


def _plugin(entry: importlib.metadata.EntryPoint) -> Plugin:
    name = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    return Plugin(scheme=entry.name.lower(), distribution=name, entry=entry)
