"""Adapters of the access store port: ``memory`` for tests, ``sqlite`` for one machine.

Belongs here: how tokens and the record of what people did are kept. Does not belong here: secrets
(a store sees only digests), and who may do what, which ``stages.access`` decides. Every adapter
passes ``anubis.testing.contracts.access_store``.
"""
