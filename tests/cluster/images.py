"""Get images into the cluster, which can pull none: from Docker, or made here of single files."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
from collections.abc import Mapping, Sequence

from tests.cluster.calling import call
from tests.cluster.layout import PAUSE_IMAGE, ClusterTrouble, Layout

PATIENCE_SECONDS = 600.0
RECORD = "loaded-images"
EPOCH = "1970-01-01T00:00:00Z"

PAUSE = """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) {
    signal(SIGTERM, leave);
    signal(SIGINT, leave);
    signal(SIGCHLD, reap);
    for (;;) pause();
}
"""
"""The process that holds a pod's namespaces, and buries what others leave behind."""


def load(place: Layout, names: Sequence[str]) -> list[str]:
    """Copy images from Docker; those that are there already in this state are passed over."""
    loaded = _loaded(place)
    identities = {name: _identity(name) for name in names}
    wanted = [name for name in names if loaded.get(name) != identities[name]]
    if not wanted:
        return []
    if place.kind.exists():
        call("kind", "load", "docker-image", *wanted, "--name", place.kind.read_text())
    else:
        _pipe(["docker", "save", *wanted], _importing(place, "-"))
    kept = {**_loaded(place), **{name: identities[name] for name in wanted}}
    _record(place).write_text(json.dumps(kept, indent=1))
    return wanted


def load_archive(place: Layout, archive: pathlib.Path) -> None:
    """Copy the image that is in a file."""
    if place.kind.exists():
        call("kind", "load", "image-archive", str(archive), "--name", place.kind.read_text())
    else:
        call(*_importing(place, str(archive)))


def names(place: Layout) -> list[str]:
    """All images that are in the cluster of this machine."""
    told = call(*_ctr(place), "images", "ls", "-q")
    return sorted(name for name in told.split() if not name.startswith("sha256:"))


def forget_containers(place: Layout) -> bool:
    """Remove what is left of containers that ended with their node; whether there were any."""
    left = call(*_ctr(place), "containers", "ls", "-q").split()
    if left:
        call(*_ctr(place), "containers", "rm", *left)
    return bool(left)


def pause(place: Layout) -> pathlib.Path:
    """An archive with the image that every pod begins with."""
    archive = place.images / f"pause-{hashlib.sha256(PAUSE.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        program = place.images / "pause"
        call("gcc", "-Os", "-static", "-x", "c", "-o", str(program), "-", given=PAUSE)
        pack(archive, PAUSE_IMAGE, {"pause": program}, user="65535:65535")
    return archive


def pack(
    archive: pathlib.Path, name: str, files: Mapping[str, pathlib.Path], *, user: str = ""
) -> None:
    """Make an image of static programs; the first one is its entrance."""
    layer = _layer(files)
    digest = hashlib.sha256(layer).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": EPOCH,
        "config": {"Entrypoint": [f"/{next(iter(files))}"], "User": user},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": EPOCH}],
    }
    described = json.dumps(config).encode()
    config_name = f"{hashlib.sha256(described).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]
    unfinished = archive.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as target:
        _add(target, config_name, described)
        _add(target, f"{digest}/layer.tar", layer)
        _add(target, "manifest.json", json.dumps(manifest).encode())
    unfinished.rename(archive)


def _layer(files: Mapping[str, pathlib.Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for name, file in files.items():
            _add(layer, name, file.read_bytes(), mode=0o755)
    return buffer.getvalue()


def _add(target: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    target.addfile(entry, io.BytesIO(content))


def _importing(place: Layout, source: str) -> list[str]:
    return [*_ctr(place), "images", "import", source]


def _ctr(place: Layout) -> list[str]:
    return ["ctr", "--address", str(place.socket), "--namespace", "k8s.io"]


def _pipe(source: list[str], target: list[str]) -> None:
    with subprocess.Popen(source, stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        call(*target, given=saving.stdout, seconds=PATIENCE_SECONDS)
    if saving.returncode != 0:
        raise ClusterTrouble(f"{' '.join(source)} failed")


def _identity(name: str) -> str:
    return call("docker", "image", "inspect", "--format", "{{.Id}}", name).strip()


def _record(place: Layout) -> pathlib.Path:
    return place.state / RECORD


def _loaded(place: Layout) -> dict[str, str]:
    try:
        kept: dict[str, str] = json.loads(_record(place).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return kept
