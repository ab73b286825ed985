"""The settings themselves. Frozen; each field says its unit, its default and why."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

from anubis import __version__


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Everything an embedded installation can be told."""

    home: Path
    """Where runs, logs and metrics are kept. ``ANUBIS_HOME``; default ``~/.anubis``."""

    slots: int = 1
    """How many runs may execute at once. ``ANUBIS_SLOTS``; one by default, because a second
    run on the same machine would disturb the measurement of the first."""

    cpus: float | None = None
    """CPUs that runs may ask for together. ``ANUBIS_CPUS``; by default those that this process may
    use, so that a container or ``taskset`` counts."""

    memory: int | None = None
    """Bytes that runs may ask for together. ``ANUBIS_MEMORY``; by default what the machine has."""

    gpus: int | None = None
    """GPUs that runs may ask for together. ``ANUBIS_GPUS``; by default those that NVIDIA's library
    finds, which needs the extra ``anubis[nvidia]``."""

    max_active_per_user: int = 10_000
    """How many runs of one person may wait or be under way. ``ANUBIS_MAX_ACTIVE``; enough for a
    large sweep, and a bound for a script that has lost its mind."""

    max_schedules_per_user: int = 1_000
    """How many schedules one person may have. ``ANUBIS_MAX_SCHEDULES``; more than anybody looks
    after, and a bound for a script that submits the same one over and over."""

    lease: timedelta = timedelta(seconds=30)
    """How long a silent worker keeps its runs. Renewed three times in that span."""

    idle_exit: timedelta = timedelta(seconds=60)
    """How long the background runtime stays when there is nothing to do. ``ANUBIS_IDLE_SECONDS``;
    a minute spares the next command the start-up, and leaves no process behind overnight."""

    host: str = "127.0.0.1"
    """Where ``anubis serve`` listens. ``ANUBIS_HOST``; loopback by default, where the operating
    system keeps others out. Any other address requires tokens."""

    port: int = 8080
    """``ANUBIS_PORT``; 0 lets the operating system choose."""

    tls_certificate: Path | None = None
    """The certificate chain, in PEM. ``ANUBIS_TLS_CERTIFICATE``; needs ``tls_key``."""

    tls_key: Path | None = None
    """The private key of the certificate, in PEM, without a password. ``ANUBIS_TLS_KEY``."""

    requires_tokens: bool = False
    """Whether tokens are required on loopback too: for a machine that several people log in to,
    or a proxy in front. ``ANUBIS_REQUIRE_TOKENS``."""

    leader_lease: str = ""
    """A Lease of the cluster whose holder alone serves. ``ANUBIS_LEADER_LEASE``; none by default:
    where there is one process per home, the lock of the home is enough. With it, replicas of a
    service stand by until they hold it, and no background runtime is ever started."""

    engines: str = "process,docker,kubernetes"
    """Which engines may be used, with commas between them; the first is what a descriptor gets that
    names none. ``ANUBIS_ENGINES``; a service in a pod offers no ``process``, which would run users'
    programs beside it, with its rights."""

    rate_limit: float = 500.0
    """Requests a second that one token may make. ``ANUBIS_RATE_LIMIT``; far above what a team
    needs, and low enough that one runaway program leaves room for the others."""

    rate_burst: int = 1000
    """Requests that one token may make at once after a pause. ``ANUBIS_RATE_BURST``."""

    max_streams: int = 5000
    """Live streams that the service keeps open at once. ``ANUBIS_MAX_STREAMS``; each is a
    connection and some 30 kB of memory, and a thousand watchers must always fit."""

    audit_days: int = 400
    """Days that the service keeps its record of who did what. ``ANUBIS_AUDIT_DAYS``; a year and a
    bit, so that what happened at this time last year can still be looked up."""

    scripts_days: int = 90
    """Days without use after which an archive of code is removed. ``ANUBIS_SCRIPTS_DAYS``; longer
    than the time between two runs of nearly everybody, and who submits again sends it again."""

    scripts_bytes: int = 20 * 1024**3
    """Bytes that archives of code may take together. ``ANUBIS_SCRIPTS_SIZE``; eighty of the
    largest, or some hundred thousand as people have them."""

    datasets: Path | None = None
    """Folder of the dataset cache. ``ANUBIS_DATASETS``; ``<home>/datasets`` by default. Several
    homes of one person may name the same, and then share what they have."""

    datasets_bytes: int | None = None
    """Bytes that datasets may take together. ``ANUBIS_DATASETS_SIZE``; no limit by default: as much
    as the disk has, less a reserve of 5 GiB (5 % of small disks) that logs and metrics need."""

    local_data: bool = True
    """Whether descriptors may name files of this machine as data. ``ANUBIS_LOCAL_DATA``; a service
    in a pod says no: its key to the cluster and everybody's runs are such files."""

    docker_host: str = "unix:///var/run/docker.sock"
    """Where the Docker engine is asked: ``unix:///path`` or ``tcp://host:port``, on this machine.
    ``ANUBIS_DOCKER_HOST``, else ``DOCKER_HOST``; ``none``: never."""

    pull: str = "missing"
    """When images are pulled. ``ANUBIS_PULL``: ``always``, ``missing`` or ``never``; only what is
    not there by default, as ``docker run`` does it."""

    private_networks: bool = False
    """Whether in Docker a run of a single program, too, has a network of its own, in which no other
    container reaches it. ``ANUBIS_PRIVATE_NETWORKS``; not by default, for making and removing a
    network takes as long as starting a container. Runs of several programs always have one."""

    kubernetes: str = "auto"
    """Whether there is an engine ``kubernetes``. ``ANUBIS_KUBERNETES``: ``auto`` where a kubeconfig
    or a pod's own service account says how to reach a cluster, ``none``: never."""

    kubeconfig: str = ""
    """Which kubeconfig. ``ANUBIS_KUBECONFIG``, else ``KUBECONFIG``, else ``~/.kube/config``; in a
    pod, where none is named, its service account."""

    kubernetes_context: str = ""
    """Which context of it. ``ANUBIS_KUBERNETES_CONTEXT``; the current one by default."""

    kubernetes_namespace: str = ""
    """Where everything of ours is. ``ANUBIS_KUBERNETES_NAMESPACE``; that of the context, or of our
    own pod, by default."""

    kubernetes_image: str = f"anubis:{__version__}"
    """Our own image, which every node must be able to pull: it fetches data and keeps output.
    ``ANUBIS_KUBERNETES_IMAGE``; see ``deploy/image``."""

    kubernetes_slots: int = 100
    """How many runs may be at the cluster at once; what does not fit there waits there.
    ``ANUBIS_KUBERNETES_SLOTS``."""

    kubernetes_datasets: str = "/var/lib/anubis/datasets"
    """Where nodes hold datasets: a folder of each node, ``pvc:NAME`` for a claim that all of them
    share, ``none`` for a fresh copy per pod. ``ANUBIS_KUBERNETES_DATASETS``."""

    kubernetes_secret: str = ""
    """A Secret whose keys become variables of what fetches data: access to object stores.
    ``ANUBIS_KUBERNETES_SECRET``; none by default."""

    kubernetes_pod_logs: str = "/var/log/pods"
    """Where the kubelet keeps the output of containers on its node.
    ``ANUBIS_KUBERNETES_POD_LOGS``; nearly everywhere this."""

    kubernetes_pod: Path | None = None
    """A file in YAML with a partial pod, laid over every pod: tolerations, annotations, a service
    account. ``ANUBIS_KUBERNETES_POD``."""

    kubernetes_domain: str = "cluster.local"
    """The DNS domain of the cluster. ``ANUBIS_KUBERNETES_DOMAIN``."""

    kubernetes_drain: timedelta = timedelta(days=1)
    """How long a pod whose program has ended waits for us to fetch its output.
    ``ANUBIS_KUBERNETES_DRAIN_SECONDS``; a day, so that no night's output is lost with a service
    that was away until morning."""

    @property
    def cluster(self) -> Path:
        """What the Kubernetes engine keeps of runs in progress."""
        return self.home / "kubernetes"

    @property
    def dataset_cache(self) -> Path:
        """Where datasets are held."""
        return self.datasets or self.home / "datasets"

    @property
    def database(self) -> Path:
        """The run store."""
        return self.home / "anubis.sqlite"

    @property
    def runs(self) -> Path:
        """What the process engine keeps of runs in progress."""
        return self.home / "runs"

    @property
    def docker(self) -> Path:
        """What the Docker engine keeps of runs in progress."""
        return self.home / "docker"

    @property
    def places(self) -> Path:
        """Code, data and files that were brought for runs in progress."""
        return self.home / "places"

    @property
    def logs(self) -> Path:
        """The output of runs."""
        return self.home / "logs"

    @property
    def series(self) -> Path:
        """The samples of runs."""
        return self.home / "series"

    @property
    def scripts(self) -> Path:
        """Archives of code that were uploaded for descriptors with ``[ml.script]``."""
        return self.home / "scripts"

    @property
    def runtime_lock(self) -> Path:
        """Held by the one living background runtime of this home."""
        return self.home / "runtime.lock"

    @property
    def runtime_pid(self) -> Path:
        """For people and tests; the lock decides, not this file."""
        return self.home / "runtime.pid"

    @property
    def service_file(self) -> Path:
        """Which process serves this home, and where. The lock decides, not this file."""
        return self.home / "service.json"

    @property
    def runtime_log(self) -> Path:
        """Where the background runtime writes about itself."""
        return self.home / "runtime.log"

    @property
    def guardian_log(self) -> Path:
        """Where zygotes and shims write when something goes wrong for them."""
        return self.home / "guardian.log"

    @property
    def wake(self) -> Path:
        """The pipe through which commands wake the runtime."""
        return self.home / "wake"
