"""Run units as containers of a Docker engine, or of Podman through the same API.

``engine`` is what the rest of Anubis calls; ``daemon`` is the only module that knows the client
library, which is an extra and is loaded when the first container is needed. Each container has a
guard, a process of its own that outlives the service: it is in ``process/guardian/container``,
because the zygote that forks it and the files it writes are those of the process engine.
"""
