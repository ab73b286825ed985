"""Who we are to a registry: what ``docker login`` wrote down for the user that we run as.

The file is Docker's own, ``~/.docker/config.json`` or below ``DOCKER_CONFIG``; a password is in it,
or a helper program keeps it. Nothing of it is stored or shown by us.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

HUB = "https://index.docker.io/v1/"
HELPER_SECONDS = 30.0
_HELPER = re.compile(r"[A-Za-z0-9._-]+")


def registry_of(image: str) -> str:
    """The registry that an image comes from, as ``docker login`` names it."""
    first, slash, _ = image.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    return first if is_host and first not in ("docker.io", "index.docker.io") else HUB


async def find(image: str) -> Mapping[str, str] | None:
    """User and password for the registry of an image; None: nobody, which is enough for most."""
    settings = _settings()
    registry = registry_of(image)
    helper = _table(settings, "credHelpers").get(registry) or settings.get("credsStore")
    if isinstance(helper, str) and _HELPER.fullmatch(helper):
        found = await _ask(f"docker-credential-{helper}", registry)
        if found is not None:
            return found
    entry = _table(settings, "auths").get(registry)
    return _written(entry) if isinstance(entry, dict) else None


def _settings() -> dict[str, object]:
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        content = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    return content if isinstance(content, dict) else {}


def _table(settings: Mapping[str, object], name: str) -> Mapping[str, object]:
    table = settings.get(name)
    return table if isinstance(table, dict) else {}


def _written(entry: Mapping[str, object]) -> Mapping[str, str] | None:
    if token := entry.get("identitytoken"):
        return {"identitytoken": str(token)}
    try:
        plain = base64.b64decode(str(entry.get("auth", ""))).decode()
    except ValueError:
        return None
    user, mark, password = plain.partition(":")
    return {"username": user, "password": password.rstrip("\0")} if mark else None


async def _ask(program: str, registry: str) -> Mapping[str, str] | None:
    """Ask a helper of Docker's for a password; None if it has none, or does not answer."""
    path = shutil.which(program)
    if path is None:
        return None
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        path, "get", stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(HELPER_SECONDS):
            answer, _ = await process.communicate(registry.encode())
        content = json.loads(answer)
        user, secret = str(content["Username"]), str(content["Secret"])
    except (TimeoutError, ValueError, KeyError, TypeError):
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if user == "<token>":
        return {"identitytoken": secret}
    return {"username": user, "password": secret}
