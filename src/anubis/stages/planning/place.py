"""Where a run is planned for: an engine, what surrounds it, and where its units find things."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from anubis.domain import blanks
from anubis.domain.plan import SCRIPTS_VARIABLE, Mount
from anubis.ports.engine import Capabilities

PYTHON_VARIABLE: Final = "ANUBIS_PYTHON"
"""Names a Python interpreter that surely exists where the unit runs."""

SCRIPTS_FOLDER: Final = "/bai/scripts"
"""Where units with files of their own find submitted code: the original's path."""

FILES_FOLDER: Final = "/anubis"
"""Where units with files of their own find ``Plan.files``."""

_SCRIPTS_MOUNT: Final = Mount(source=blanks.SCRIPTS, target=SCRIPTS_FOLDER, read_only=False)
_FILES_MOUNT: Final = Mount(source=blanks.FILES, target=FILES_FOLDER)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What planning needs to know about the place of the run."""

    directory: str  #: where relative paths start; empty: the engine's default
    environment: Mapping[str, str]  #: what a program gets there before we add anything
    python: str  #: our own interpreter for processes, ``python3`` for images
    script: str = ""  #: the archive of code that was submitted beside the descriptor


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """An engine and its surroundings, as units see them."""

    capabilities: Capabilities
    context: Context
    script: str  #: the archive of code that all programs of the user get; empty: none

    @property
    def isolates(self) -> bool:
        """Whether units have files, host names and ports of their own."""
        return self.capabilities.isolates

    @property
    def has_images(self) -> bool:
        """Whether programs come in images, and see nothing of the submitter's surroundings."""
        return self.capabilities.needs_image

    @property
    def has_machines(self) -> bool:
        """Whether the engine chooses a machine for each unit."""
        return self.capabilities.has_machines

    @property
    def brings(self) -> bool:
        """Whether files are written when the engine knows where its units are."""
        return self.capabilities.brings

    @property
    def surroundings(self) -> Mapping[str, str]:
        """The variables that every program has here before we add anything."""
        return {} if self.has_images else self.context.environment

    @property
    def directory(self) -> str | None:
        """Where programs start; None: where the image or the engine likes."""
        return None if self.has_images else self.context.directory or None

    @property
    def variables(self) -> Mapping[str, str]:
        """What every program of the user is told."""
        told = {PYTHON_VARIABLE: self.context.python}
        if self.script:
            told[SCRIPTS_VARIABLE] = SCRIPTS_FOLDER if self.isolates else blanks.SCRIPTS
        return told

    @property
    def real_paths(self) -> Mapping[str, str]:
        """Where submitted code is, for descriptors that name its place in containers."""
        return {SCRIPTS_FOLDER: blanks.SCRIPTS} if self.script and not self.isolates else {}

    @property
    def files(self) -> str:
        """Where a unit finds ``Plan.files``."""
        return FILES_FOLDER if self.isolates else blanks.FILES

    @property
    def script_mounts(self) -> tuple[Mount, ...]:
        """What a unit needs to see code that was submitted."""
        return (_SCRIPTS_MOUNT,) if self.isolates and self.script else ()

    @property
    def file_mounts(self) -> tuple[Mount, ...]:
        """What a unit needs to see ``Plan.files``."""
        return (_FILES_MOUNT,) if self.isolates else ()
