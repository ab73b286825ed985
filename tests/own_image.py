"""Our own image for tests, ``anubis:test``, made of ``deploy/image/Dockerfile`` without a registry.

``python -m tests.own_image`` makes it anew if the source, a lock or the Dockerfile changed, and has
it in the test cluster if there is one. The libraries are a layer of their own that stays, so a
change of our source takes seconds.
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tests import docker_images
from tests.cluster import control
from tests.docker_images import Unavailable, docker

ROOT = pathlib.Path(__file__).parents[1]
NAME = "anubis:test"
DOCKERFILE = "deploy/image/Dockerfile"
SINGLE = (DOCKERFILE, ".dockerignore", "pyproject.toml", "README.md", "LICENSE")
LOCKS = ("requirements/run.lock", "requirements/extras.lock")
PACKAGES = ("anubis", "benchmarkai")
LABEL = "anubis.content"
LIBRARIES = "anubis-test/libraries:latest"


def make() -> str:
    """Make sure that Docker has the image of this source; its name. Raises Unavailable."""
    wanted = content()
    with docker_images.alone("own-image"):
        if _label() != wanted:
            _build(wanted)
    return NAME


def content() -> str:
    """What the image is made of, as a digest."""
    found = hashlib.sha256(_base().encode())
    for path in _files():
        found.update(f"{path.relative_to(ROOT)}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _files() -> list[pathlib.Path]:
    source = [
        path
        for package in PACKAGES
        for path in sorted((ROOT / "src" / package).rglob("*"))
        if path.is_file() and path.suffix not in (".pyc", ".pyo")
    ]
    return [*(ROOT / name for name in (*SINGLE, *LOCKS)), *source]


def _base() -> str:
    """An image with Python that can be had without a registry."""
    return docker_images.python_mpi()


def _label() -> str:
    found = docker(
        "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', NAME, check=False
    )
    return found.stdout.strip() if found.returncode == 0 else ""


def _build(wanted: str) -> None:
    earlier = docker_images.identity(NAME)
    base = f"BASE={_base()}"
    with tempfile.TemporaryDirectory(prefix="anubis-image-") as folder:
        context = pathlib.Path(folder)
        for path in _files():
            copy = context / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
        # Copies keep their times, and with them Docker's cache of the libraries.
        shutil.copytree(_wheels(), context / "build" / "wheels")
        options = ("--quiet", "--file", str(context / DOCKERFILE), "--build-arg", base)
        # By a name, so that they stay when the rest of an older build is removed.
        docker("build", *options, "--target", "libraries", "--tag", LIBRARIES, folder)
        docker("build", *options, "--label", f"{LABEL}={wanted}", "--tag", NAME, folder)
    if earlier not in ("", docker_images.identity(NAME)):
        docker("rmi", earlier, check=False)  # may be in use
    docker("image", "prune", "--force", "--filter", "label=anubis.stage=package", check=False)


def _wheels() -> pathlib.Path:
    """All libraries as files, fetched once for these locks and the Python of the base."""
    told = docker(
        "run", "--rm", _base(), "python3", "-c", "import sys; print(*sys.version_info[:2])"
    )
    version = ".".join(told.stdout.split())
    locks = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in LOCKS)).hexdigest()
    folder = docker_images.cache() / f"wheels-{version}-{locks[:12]}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _download(
            unfinished, version, "--require-hashes", *(f"--requirement={ROOT / n}" for n in LOCKS)
        )
        _download(unfinished, version, "pip")
        unfinished.rename(folder)
    return folder


def _download(folder: pathlib.Path, version: str, *what: str) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download")
    options = (
        "--only-binary=:all:",
        "--no-deps",
        f"--python-version={version}",
        f"--dest={folder}",
    )
    done = subprocess.run([*pip, *options, *what], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"pip download failed: {done.stderr.strip()[-2000:]}")


def loaded() -> str:
    """Make sure that the test cluster has it; its name. Raises Unavailable."""
    name = make()
    with docker_images.alone("own-image"):
        control.load(name)
    return name


def main() -> None:
    """Make it, have it in the cluster if there is one, and print its name."""
    try:
        is_there = pathlib.Path(control.kubeconfig()).exists()
        print(loaded() if is_there else make())  # noqa: T201 - the answer of a command
    except Unavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
