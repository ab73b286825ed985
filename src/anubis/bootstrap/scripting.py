"""Code that is submitted beside descriptors: where it is left, and how long it stays.

An archive goes when nobody has used it for a long time. What a schedule needs for its next firing,
or a run that still waits, counts as used, however long ago that was.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from anubis.adapters.script_store import naming
from anubis.domain.document import Document
from anubis.domain.errors import NotPossible, RunNotFound

if TYPE_CHECKING:
    from anubis.adapters.script_store.packing import Brought
    from anubis.bootstrap.application import Application, Submission
    from anubis.bootstrap.local import LocalApplication

MANY: Final = 10_000
"""Of the oldest runs that have not ended, so many are asked for their code."""


async def brought(
    application: Application, document: Document, path: str
) -> tuple[Document, Brought]:
    """A document with the code under ``path``, which is now where runs find it.

    Raises DescriptorInvalid, or UserError for what cannot be packed; nothing is sent then.
    """
    # Here and not above: next to no command packs anything or reads a descriptor here.
    from anubis.adapters.script_store import packing
    from anubis.bootstrap.submitting import must_have_one_script

    must_have_one_script(application.validate(document).descriptor, path)
    code = await packing.bring(path, application.scripts)
    return dataclasses.replace(document, script=code.name), code


@dataclasses.dataclass(frozen=True, slots=True)
class LocalScripts:
    """The archives of this machine. See ``ScriptInbox``."""

    application: LocalApplication

    async def has(self, name: str) -> bool:
        """Whether an archive of this name is here."""
        return await self.application.script_store.has(name)

    async def must_have(self, name: str) -> None:
        """Raise UserError, which names it, unless an archive is here."""
        naming.demand_legal(name)
        if not await self.has(name):
            raise naming.missing(name)

    def must_be_same(self, submission: Submission, stored: Document) -> None:
        """Raise NotPossible if a key that is in use comes with other code."""
        if submission.document.script != stored.script:
            raise NotPossible(
                f"the key {submission.key!r} was used for other code: found "
                f"{submission.document.script or 'none'}, expected {stored.script or 'none'}"
            )

    async def put(self, name: str, content: AsyncIterable[bytes]) -> None:
        """Store an archive. First those go that are old: a home without a service has nobody else
        who would see to it.
        """
        app = self.application
        await self.forget_unused(app.clock.now() - timedelta(days=app.settings.scripts_days))
        await app.script_store.put(name, content)

    async def forget_unused(self, before: datetime) -> int:
        """Remove the archives that were last used before a moment, and that nothing waits for."""
        for name in await self._awaited(before):
            await self.has(name)
        return await self.application.script_store.forget_unused(before)

    async def forget_unfinished(self, before: datetime) -> int:
        """Remove what is left of uploads that never ended."""
        return await self.application.script_store.forget_unfinished(before)

    async def _awaited(self, before: datetime) -> set[str]:
        """What schedules need, and runs that were submitted before a moment and have not ended."""
        app = self.application
        names = set(await app.schedule_store.scripts())
        for run in await app.store.active(MANY):
            if run.submitted_at >= before:
                break  # they come in order
            with contextlib.suppress(RunNotFound):  # purged in this moment
                names.add((await app.store.document(run.id)).script)
        return names - {""}
