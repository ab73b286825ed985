"""The wire of the original clients, over the same application calls as ``resources``.

``routes`` lists them. Inwards: ``forms`` and ``reading`` take in what clients send, ``submitting``
and ``canceling`` do it, ``keeping`` remembers who asked. Outwards: ``finding`` says what an id
names, ``telling`` tells its story in the original's ``words``, ``paging`` from where a client
stopped, ``envelopes`` in its shapes; ``refusing`` and ``quieting`` say no so that it is understood
as no. ``tool`` is the client that we serve.
"""

from __future__ import annotations

from anubis.entrypoints.api.legacy.pages import elsewhere
from anubis.entrypoints.api.legacy.quieting import Quiet
from anubis.entrypoints.api.legacy.routes import router

__all__ = ["Quiet", "elsewhere", "router"]
