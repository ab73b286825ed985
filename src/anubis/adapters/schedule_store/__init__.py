"""Adapters of the schedule store port: ``memory`` for tests, ``sqlite`` for one machine.

Belongs here: how schedules and their events are kept, and what is refused (``rules``: pure, shared
by every technology). Does not belong here: when a schedule fires and what then happens, which
``stages.scheduling`` decides. Every adapter passes ``anubis.testing.contracts.schedule_store``.
"""
