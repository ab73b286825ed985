"""Adapters of the action store port: ``memory`` for tests, ``sqlite`` for one machine.

Belongs here: how messages of the original wire are kept. Does not belong here: what they mean,
which the façade of that wire knows. Every adapter passes ``anubis.testing.contracts.action_store``.
"""
