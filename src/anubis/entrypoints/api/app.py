"""The app: routes, and around them what every request passes.

From the outside in: ``Envelope`` (request id, service headers, log, figures, the last resort for
defects), ``Gate`` (which hosts and origins may speak to us), ``Identify`` (who asks, and whether
too often), ``SizeLimit``, gzip, routes.
"""

from __future__ import annotations

from fastapi import Depends, FastAPI
from starlette.middleware.gzip import GZipMiddleware

import anubis
from anubis.bootstrap.service import Service
from anubis.entrypoints.api import legacy, operations, problems, resources
from anubis.entrypoints.api.envelope import Envelope
from anubis.entrypoints.api.figures import Figures
from anubis.entrypoints.api.gate import Gate
from anubis.entrypoints.api.identifying import Identify
from anubis.entrypoints.api.operations.recent import Recent
from anubis.entrypoints.api.resources import documentation
from anubis.entrypoints.api.resources.parameters import given_once
from anubis.entrypoints.api.sizes import SizeLimit

SMALLEST_GZIP = 1024
"""Bytes. Below, the answer fits a packet anyway."""

GZIP_LEVEL = 5
"""Level 9 takes three times as long for a few percent."""


def create(service: Service) -> FastAPI:
    """The app over an open service."""
    app = FastAPI(
        title="Anubis",
        version=anubis.__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirected POST loses its body in some clients
    )
    app.state.service = service
    app.state.figures = Figures()
    app.state.recent = Recent(service.application.store, service.actions, service.application.clock)
    routers = (*resources.ROUTERS, *operations.ROUTERS, legacy.router)
    problems.install(app, [route for router in routers for route in router.routes])
    for router in (*resources.ROUTERS, *operations.ROUTERS):
        app.include_router(router, dependencies=[Depends(given_once)])
    app.include_router(legacy.router)
    app.router.default = legacy.elsewhere(app.router.default)
    documentation.install(app)
    # The last one added is the outermost.
    app.add_middleware(GZipMiddleware, minimum_size=SMALLEST_GZIP, compresslevel=GZIP_LEVEL)
    app.add_middleware(SizeLimit)
    app.add_middleware(Identify, service=service)
    app.add_middleware(legacy.Quiet)
    app.add_middleware(Gate, requires_tokens=service.requires_tokens)
    app.add_middleware(Envelope, figures=app.state.figures)
    return app
