"""What the cluster needs of the machine itself, and how it is given back.

An address on ``lo``, packet rules in chains of our own, a few kernel settings, and links for paths
that Kubernetes has built in. Everything can be done twice, and undone after a crash.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence

from tests.cluster import processes
from tests.cluster.calling import call, works
from tests.cluster.layout import BRIDGE, FIRST, NODE_ADDRESS, ClusterTrouble, Layout

TOOLS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "iptables": "iptables",
    "openssl": "openssl",
    "gcc": "gcc libc6-dev",
}
"""Programs that are not built here, and the Debian packages that have them."""

PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
NETWORK_SETTINGS = ("net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables")
KUBELET_SETTINGS = (
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
)
"""kubelet overwrites these at its start; a machine that panics is no machine for tests."""

FORWARD, INPUT = "ANUBIS-FORWARD", "ANUBIS-INPUT"
OURS = "anubis+"
"""The bridge of pods, and the cable to a second node."""

FORWARD_RULES = (
    f"-i {OURS} -o {OURS} -j ACCEPT",
    f"-o {OURS} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    f"-i {OURS} -j REJECT",  # nothing leaves this machine
)
INPUT_RULES = (
    f"! -d {NODE_ADDRESS} -j RETURN",
    "-i lo -j RETURN",
    f"-i {OURS} -j RETURN",
    "-j DROP",  # nobody else reaches the API server
)


def need_tools() -> None:
    """Raises ClusterTrouble that names all that is missing."""
    if os.geteuid() != 0:
        raise ClusterTrouble("a cluster on this machine needs root: sudo make cluster")
    missing = {package for tool, package in TOOLS.items() if shutil.which(tool) is None}
    if not _plugin_folders():
        missing.add("containernetworking-plugins")
    if missing:
        raise ClusterTrouble(f"these Debian packages are missing: {' '.join(sorted(missing))}")


def plugins() -> pathlib.Path:
    """Where the programs are that make a pod's network."""
    return _plugin_folders()[0]


def prepare(place: Layout) -> None:
    """Make the machine ready; nothing happens to what is ready already."""
    _forget_earlier_boot(place)
    _link(place)
    _save_settings(place)
    if not has_address():
        call("ip", "address", "add", f"{NODE_ADDRESS}/32", "dev", "lo")
    for name in NETWORK_SETTINGS:
        _set(name, "1")
    _make_chain(FORWARD, "FORWARD", FORWARD_RULES)
    _make_chain(INPUT, "INPUT", INPUT_RULES)


def restore_settings(place: Layout, names: tuple[str, ...] = KUBELET_SETTINGS) -> None:
    """Put kernel settings back to what they were before the cluster."""
    saved: Mapping[str, str] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        saved = json.loads(_saved(place).read_text())
    for name in names:
        # Docker needs forwarding, and may have been started after us.
        if name in saved and not (name == "net.ipv4.ip_forward" and _docker_runs()):
            _set(name, saved[name])


def give_back(place: Layout) -> None:
    """Undo ``prepare``, and what the parts have made on this machine. They have ended."""
    end_pods(place)
    unmount(place)
    _remove_rules(place)
    call("ip", "link", "delete", BRIDGE, check=False)
    if has_address():
        call("ip", "address", "delete", f"{NODE_ADDRESS}/32", "dev", "lo", check=False)
    restore_settings(place, (*NETWORK_SETTINGS, *KUBELET_SETTINGS))
    remove_control_groups(place)
    for path, target in _links(place).items():
        if path.is_symlink() and path.readlink() == target:
            path.unlink()


def _plugin_folders() -> list[pathlib.Path]:
    return [folder for folder in map(pathlib.Path, PLUGINS) if (folder / "bridge").exists()]


def _forget_earlier_boot(place: Layout) -> None:
    """Sockets, mounts and processes of an earlier boot are not there any more; nor are pods."""
    stamp = place.run / "boot"
    if stamp.exists() and stamp.read_text() == processes.boot():
        return
    shutil.rmtree(place.run, ignore_errors=True)
    place.make_folders()
    stamp.write_text(processes.boot())


def _links(place: Layout) -> Mapping[pathlib.Path, pathlib.Path]:
    """Paths that are built into kubelet and the plug-ins, or that users expect."""
    return {
        pathlib.Path("/var/lib/kubelet"): place.state / "kubelet-well-known",
        pathlib.Path("/var/lib/cni"): place.state / "cni",
        pathlib.Path("/var/log/containers"): place.state / "container-logs",
        pathlib.Path("/var/log/pods"): place.state / "pod-logs",
    }


def _link(place: Layout) -> None:
    for path, target in _links(place).items():
        target.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() and path.readlink() == target:
            continue
        if path.is_symlink() or (path.exists() and any(path.iterdir())):
            raise ClusterTrouble(f"{path} belongs to another Kubernetes on this machine")
        if path.exists():
            path.rmdir()
        path.symlink_to(target)


def _saved(place: Layout) -> pathlib.Path:
    return place.of(FIRST).run / "settings"


def _save_settings(place: Layout) -> None:
    if _saved(place).exists():
        return
    call("modprobe", "br_netfilter", check=False)  # built in, or a module, or not there
    names = (*NETWORK_SETTINGS, *KUBELET_SETTINGS)
    found = {name: _setting(name).read_text().strip() for name in names if _setting(name).exists()}
    _saved(place).write_text(json.dumps(found))


def _setting(name: str) -> pathlib.Path:
    return pathlib.Path("/proc/sys", *name.split("."))


def _set(name: str, value: str) -> None:
    if _setting(name).exists() and _setting(name).read_text().strip() != value:
        _setting(name).write_text(value)


def _docker_runs() -> bool:
    return pathlib.Path("/sys/class/net/docker0").exists()


def has_address() -> bool:
    """Whether the node's address is on this machine."""
    return f"inet {NODE_ADDRESS}/32" in call("ip", "-4", "address", "show", "dev", "lo")


def _make_chain(chain: str, where: str, rules: tuple[str, ...]) -> None:
    if not works("iptables", "-w", "-n", "-L", chain):
        call("iptables", "-w", "-N", chain)
    call("iptables", "-w", "-F", chain)
    for rule in rules:
        call("iptables", "-w", "-A", chain, *rule.split())
    if not works("iptables", "-w", "-C", where, "-j", chain):
        call("iptables", "-w", "-I", where, "1", "-j", chain)


def end_pods(place: Layout) -> None:
    """Kill the keepers of our containerd's pods (Docker's have another address), and the pods."""
    ours = f"-address\0{place.socket}\0".encode()
    for pid, words in _command_lines():
        if b"containerd-shim" in words and ours in words:
            _kill_children(pid)
            _kill(pid)


def _kill_children(pid: int) -> None:
    """Also those that become its children when theirs end."""
    for _ in range(100):
        children = _children(pid)
        if not children:
            return
        for child in children:
            _kill(child)
        time.sleep(0.05)


def _command_lines() -> Iterator[tuple[int, bytes]]:
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes()


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        files = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
        return [int(word) for file in files for word in file.read_text().split()]
    return []


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def unmount(place: Layout, process: str = "self", enter: Sequence[str] = ()) -> None:
    """What is mounted in our folders, as a process sees it; ``enter``: how its view is had."""
    for path in sorted(_mounted(place, process), reverse=True):
        call(*enter, "umount", "--lazy", path, check=False)  # it may be going by itself
    if left := _mounted(place, process):
        # Removing our folder would remove what belongs to others.
        raise ClusterTrouble(f"these are still mounted: {' '.join(left)}")


def _mounted(place: Layout, process: str) -> list[str]:
    lines = pathlib.Path(f"/proc/{process}/mounts").read_text().splitlines()
    # The kernel writes a blank in a path as \040.
    paths = [line.split(" ")[1].replace("\\040", " ") for line in lines]
    return [path for path in paths if path.startswith(f"{place.root}/")]


def _remove_rules(place: Layout) -> None:
    if (place.bin / "kube-proxy").exists():
        call(place.program("kube-proxy"), "--cleanup", check=False)
    for program in ("iptables", "ip6tables"):
        for table in ("filter", "nat", "mangle"):
            _remove_chains(program, table)


def _remove_chains(program: str, table: str) -> None:
    """Those of kube-proxy, kubelet and the plug-ins that are left, and our own."""
    told = call(program, "-w", "-t", table, "-S", check=False).splitlines()
    chains = [line.split()[1] for line in told if line.startswith("-N ")]
    ours = [
        name for name in chains if name.startswith(("KUBE-", "CNI-")) or name in (FORWARD, INPUT)
    ]
    for line in told:
        words = shlex.split(line)
        if words[0] == "-A" and words[1] not in ours and words[-1] in ours:
            call(program, "-w", "-t", table, "-D", *words[1:], check=False)
    for step in ("-F", "-X"):
        for chain in ours:
            call(program, "-w", "-t", table, step, chain, check=False)


def remove_control_groups(place: Layout) -> None:
    """Those of a node's pods. They have ended; that takes a moment."""
    name = place.node.control_group or "kubepods"
    for _ in range(20):
        found = list(pathlib.Path("/sys/fs/cgroup").glob(f"**/{name}"))
        if not found:
            return
        for group in found:
            _remove_control_group(group)
        time.sleep(0.1)


def _remove_control_group(group: pathlib.Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            pathlib.Path(folder).rmdir()
