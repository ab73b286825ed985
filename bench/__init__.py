"""Measurements of Anubis beside its peers, on the machine at hand.

One module per question. A module with ``main()`` is a bench: it prints our figure and the peer's,
measured in the same run, and their ratio. Modules without ``main()`` serve the others.
"""
