"""Images for tests, made of Debian packages, since a test may not pull anything.

``python -m tests.docker_images`` makes them all, which a pipeline does before its tests. An image
is named after its recipe, so that a changed recipe gives a new one; a copy of each lies in the
cache of whoever runs the tests, so that a fresh Docker engine needs seconds for it, not minutes.

Only the standard library: it runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import IO

PATIENCE_SECONDS = 280.0
"""For one step of making an image. Below the time that a test has."""


class Unavailable(Exception):
    """An image cannot be had on this machine; says why."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How a root file system is made."""

    name: str
    packages: tuple[str, ...] = ()  #: beside the smallest Debian; none: BusyBox and nothing else
    without: tuple[str, ...] = (
        "var/cache/apt",
        "var/lib/apt/lists",
        "usr/share/doc",
        "usr/share/locale",
        "usr/share/man",
    )
    command: str = "/bin/sh"

    @property
    def tag(self) -> str:
        """The name of the image, which changes with the recipe."""
        return f"anubis-test/{self.name}:{hashlib.sha256(repr(self).encode()).hexdigest()[:12]}"

    @property
    def archive(self) -> pathlib.Path:
        """Where a copy is kept."""
        return cache() / f"{self.name}-{self.tag.rpartition(':')[2]}.tar.gz"


BUSYBOX = Recipe(name="busybox")
PYTHON_MPI = Recipe(
    name="python-mpi",
    packages=("openmpi-bin", "openssh-client", "openssh-server", "python3", "python3-mpi4py"),
)


def busybox() -> str:
    """An image of 2 MB with a shell and the usual small programs; its name."""
    return image(BUSYBOX)


def python_mpi() -> str:
    """An image with Python, mpi4py, OpenMPI and an ssh server; its name."""
    return image(PYTHON_MPI)


def image(recipe: Recipe) -> str:
    """Make sure that the engine has an image; its name. Raises Unavailable."""
    if not has(recipe.tag):
        with alone(recipe.name):  # others wait here, and then find it
            if not has(recipe.tag):
                _import(recipe)
    return recipe.tag


def has(name: str) -> bool:
    """Whether the engine has an image of this name."""
    return bool(identity(name))


def docker(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Call the ``docker`` command. Raises Unavailable if that is not possible."""
    # The builder that needs no plug-in: Debian has none.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    return _call("docker", *words, check=check, environment=environment)


def build(folder: pathlib.Path, name: str, base: str) -> None:
    """Build what a Dockerfile says, on another base than it names. Raises Unavailable."""
    with alone("build"):  # one after the other: the same content then comes from Docker's cache
        earlier = identity(name)
        docker("build", "--quiet", "--build-arg", f"BASE={base}", "--tag", name, str(folder))
        if earlier not in ("", identity(name)):
            docker("rmi", earlier, check=False)  # may be in use, or have another name


@contextlib.contextmanager
def lent(name: str, image: str) -> Iterator[None]:
    """Let an image be found by a name that belongs to another one, unless that one is here.

    The last of all processes that lend it takes the name away again.
    """
    lock_name = re.sub(r"[^a-z0-9]", "-", name)
    with (cache() / f"lent-{lock_name}.lock").open("w") as lock:
        while not has(name):
            fcntl.flock(lock, fcntl.LOCK_EX)
            docker("tag", image, name)
            fcntl.flock(lock, fcntl.LOCK_SH)  # lets go for an instant, hence the loop
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield
        finally:
            _take_back(name, image, lock)


def _take_back(name: str, image: str, lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # others still need it
        return
    if identity(name) == identity(image):
        docker("rmi", "--no-prune", name)


def identity(name: str) -> str:
    """The id of an image; empty if the engine has none of this name."""
    found = docker("image", "inspect", "--format", "{{.Id}}", name, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def labelled(label: str) -> list[str]:
    """All containers, networks and volumes with a label."""
    kinds = {
        "container": ("ps", "--all", "--format", "{{.Names}}"),
        "network": ("network", "ls", "--format", "{{.Name}}"),
        "volume": ("volume", "ls", "--format", "{{.Name}}"),
    }
    return [
        f"{kind} {name}"
        for kind, words in kinds.items()
        for name in docker(*words, "--filter", f"label={label}").stdout.split()
    ]


def cache() -> pathlib.Path:
    """Where copies of images are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(root) / "anubis-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def alone(what: str) -> Iterator[None]:
    """Do something that other processes of the tests do not do at the same time."""
    with (cache() / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file, or with this process
        yield


def _import(recipe: Recipe) -> None:
    if not recipe.archive.exists():
        with tempfile.TemporaryDirectory(prefix="anubis-image-") as folder:
            root = pathlib.Path(folder, "root")
            maker: Callable[[Recipe, pathlib.Path], None] = _debian if recipe.packages else _busybox
            maker(recipe, root)
            _pack(root, recipe)
    change = f'CMD ["{recipe.command}"]'
    docker("import", "--change", change, str(recipe.archive), recipe.tag)


def _pack(root: pathlib.Path, recipe: Recipe) -> None:
    unwanted = [f"--exclude=./{path}/*" for path in recipe.without]
    unfinished = recipe.archive.with_suffix(f".{os.getpid()}")
    options = ("--use-compress-program=gzip -1", *unwanted, "--directory", str(root))
    try:
        _call("tar", "--create", "--file", str(unfinished), *options, ".")
        unfinished.rename(recipe.archive)
    finally:
        unfinished.unlink(missing_ok=True)


def _busybox(recipe: Recipe, root: pathlib.Path) -> None:
    program = shutil.which("busybox")
    if program is None:
        raise Unavailable("busybox is not installed (Debian package busybox-static)")
    for folder in ("bin", "etc", "proc", "sys", "dev", "tmp", "root"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy(program, root / "bin" / "busybox")
    for applet in _call(program, "--list").stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")


def _debian(recipe: Recipe, root: pathlib.Path) -> None:
    if os.geteuid() != 0:
        raise Unavailable(f"making the image {recipe.name} needs root, for debootstrap")
    packages = f"--include={','.join(recipe.packages)}"
    options = ("--variant=minbase", packages)
    _call("debootstrap", *options, _release(), str(root), _mirror())
    # Keys of the host that everybody with this image would share.
    for key in (root / "etc" / "ssh").glob("ssh_host_*"):
        key.unlink()


def _release() -> str:
    """The machine's own release, which its mirror surely has."""
    told = _call("sh", "-c", '. /etc/os-release && echo "$VERSION_CODENAME"').stdout.strip()
    if not told:
        raise Unavailable("this machine has no Debian release that packages could be taken from")
    return told


def _mirror() -> str:
    """Where this machine takes its packages from."""
    wanted = ("Created-By: Packages", "Component: main")
    found = _call("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted).stdout.split()
    if not found:
        raise Unavailable("apt has no source of packages (apt-get update?)")
    return found[0]


def _call(
    *command: str, check: bool = True, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took over {PATIENCE_SECONDS:.0f} s") from None
    if check and done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise Unavailable(f"{' '.join(command[:2])} failed: {said}")
    return done


def main() -> None:
    """Make all images, and print their names."""
    try:
        for recipe in (BUSYBOX, PYTHON_MPI):
            print(image(recipe))  # noqa: T201 - the answer of a command
    except Unavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
