"""Adapters of the run store port: ``memory`` for tests, ``sqlite`` for one machine.

Belongs here: how runs, events and summaries are kept, and what a change does to them
(``transitions``, ``references``: pure rules that every technology shares). Does not belong here:
when a run should move, which the runtime decides, and logs and series, which have stores of their
own. Every adapter passes ``anubis.testing.contracts.run_store``.
"""
