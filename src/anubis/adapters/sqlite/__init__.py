"""One SQLite file that several stores share: nothing to install, several processes, durable.

Belongs here: how connections are opened, the writer thread, the schema of all stores as numbered
migrations, how queries are read from ``.sql`` files, and how instants, texts and documents are
spelled in rows. Does not belong here: any question or change of a port; each store has its own,
in a folder ``sqlite`` of its port. Why all share one file:
docs/explanation/decisions/0013-one-order-of-events-one-database.md.

The parts, in the order of a call: ``database`` (what stores are given), ``writing`` (the thread);
below them ``connecting``, ``migrating``, ``queries``, ``values`` and ``documents``.
"""

from __future__ import annotations

from anubis.adapters.sqlite.database import Database

__all__ = ["Database"]
