"""Which real parts a test needs that a machine may not have: Docker, OpenMPI, Kubernetes.

A part that is missing skips the test at home, with a reason, and fails it in a pipeline, where it
would otherwise go unnoticed that nothing is tested any more.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from tests import docker_images
from tests.cluster import control
from tests.cluster.layout import ClusterTrouble

DEBIAN_PYTHON = "/usr/bin/python3"
"""The interpreter that Debian's packages belong to; the one in PATH is often another."""


def is_pipeline() -> bool:
    """Whether nothing may be missing."""
    return bool(os.environ.get("CI") or os.environ.get("ANUBIS_CI"))


def need(condition: object, what: str) -> None:
    """Skip at home what cannot be had, and fail where everything must be there."""
    if condition:
        return
    if is_pipeline():
        pytest.fail(what)
    pytest.skip(what)


def need_docker() -> None:
    """A Docker engine that answers, and what is needed to talk to it."""
    need(importlib.util.find_spec("aiodocker"), "aiodocker is not installed: anubis[docker]")
    trouble = _trouble_with_docker()
    need(not trouble, f"no Docker engine: {trouble}")


def need_mpi() -> None:
    """OpenMPI on this machine, with Python's binding to it."""
    need(shutil.which("mpirun"), "mpirun is not installed (Debian package openmpi-bin)")
    trouble = _trouble_with_mpi4py()
    need(not trouble, f"{DEBIAN_PYTHON} has no mpi4py (Debian package python3-mpi4py): {trouble}")


def need_cluster() -> str:
    """A real Kubernetes that answers; its kubeconfig.

    In a pipeline it may be missing only where it could not be had at all, which the pipeline
    says loudly; ``ANUBIS_CLUSTER`` is set where there is one.
    """
    trouble = _trouble_with_cluster()
    what = f"no Kubernetes cluster for tests (make cluster): {trouble}"
    if trouble and not os.environ.get("ANUBIS_CLUSTER"):
        pytest.skip(what)
    need(not trouble, what)
    return control.kubeconfig()


@contextlib.contextmanager
def second_node(*images: str) -> Iterator[str]:
    """Another real node of the cluster for a while, with these images; its name."""
    with contextlib.ExitStack() as held:
        try:
            name = held.enter_context(control.second_node(*images))
        except ClusterTrouble as error:
            need(False, f"the cluster cannot have a second node: {error}")
        yield name


def busybox() -> str:
    """The name of an image of 2 MB with a shell."""
    return _image(docker_images.BUSYBOX)


def python_mpi() -> str:
    """The name of an image with Python, mpi4py, OpenMPI and an ssh server."""
    return _image(docker_images.PYTHON_MPI)


def with_images(descriptor: str) -> str:
    """A descriptor in which images of tests, written with ``:latest``, have their real names."""
    names = {"anubis-test/busybox:latest": busybox, "anubis-test/python-mpi:latest": python_mpi}
    for written, name in names.items():
        if written in descriptor:
            descriptor = descriptor.replace(written, name())
    return descriptor


def left_in_docker() -> list[str]:
    """All containers, networks and volumes that runs of any home have left in Docker."""
    return [] if _trouble_with_docker() else docker_images.labelled("anubis.run")


def left_in_cluster() -> list[str]:
    """All namespaces that tests have left in a cluster of ours, and what runs have left."""
    return control.left_behind() if control.is_here() and not _trouble_with_cluster() else []


def _image(recipe: docker_images.Recipe) -> str:
    need_docker()
    name, trouble = _made(recipe)
    need(name, f"the image {recipe.name} cannot be made: {trouble}")
    return name


@functools.cache  # also of a failure: making it again for each test would take hours
def _made(recipe: docker_images.Recipe) -> tuple[str, str]:
    try:
        return docker_images.image(recipe), ""
    except docker_images.Unavailable as error:
        return "", str(error)


@functools.cache
def _trouble_with_docker() -> str:
    try:
        docker_images.docker("version", "--format", "{{.Server.Version}}")
    except docker_images.Unavailable as error:
        return str(error)
    return ""


@functools.cache
def _trouble_with_cluster() -> str:
    return control.trouble()


@functools.cache
def _trouble_with_mpi4py() -> str:
    if not pathlib.Path(DEBIAN_PYTHON).exists():
        return "there is no such interpreter"
    words = [DEBIAN_PYTHON, "-c", "import mpi4py"]
    return subprocess.run(words, capture_output=True, text=True).stderr.strip()[-200:]
