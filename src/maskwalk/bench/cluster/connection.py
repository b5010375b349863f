"""This process and a Ray cluster: connecting to one or starting one here, and what fits into it."""

import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

from maskwalk.errors import MaskwalkError, real, whole

SMALLEST = 1e-4  # of a GPU, as Ray counts
PATIENCE = 5.0  # seconds in which an address must answer; Ray itself tries for minutes


@dataclass(frozen=True)
class Cluster:
    """Which cluster, and what a worker takes of it."""

    address: str | None = None  # HOST:PORT or auto; None: RAY_ADDRESS, or one started here
    workers: int | None = None  # at most; None: as many as fit
    gpus: float = 0.0  # of each worker; a fraction shares one

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole("workers", self.workers, 1)
        given = real("gpus", self.gpus, 0)
        if given and (given < SMALLEST or (given > 1 and given != int(given))):
            raise MaskwalkError(
                f"gpus must be a whole number, or a fraction of one GPU of at least {SMALLEST:g}, "
                f"not {self.gpus:g}."
            )

    def slots(self, node: dict[str, Any]) -> int:
        """How many workers fit on a node, with a processor core each."""
        if not node["Alive"]:
            return 0
        owns = node["Resources"]
        cores, devices = int(owns.get("CPU", 0)), owns.get("GPU", 0.0)
        if not self.gpus:
            return cores
        if self.gpus >= 1:
            return min(cores, int(devices // self.gpus))
        return min(cores, int(devices) * int(1 / self.gpus + 1e-9))  # none lies on two devices


def load_ray() -> Any:
    """The package, or a sentence."""
    try:
        import ray
    except ImportError as problem:
        raise MaskwalkError(
            f"--engine ray needs the package ray ({problem}); install it with: "
            "pip install 'maskwalk[ray]'."
        ) from None
    return ray


def check_address(address: str) -> None:
    """Refuses an address that is none, or where nothing listens."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise MaskwalkError(
            f"--address is HOST:PORT of a Ray cluster, or auto, not {address[:200]!r}."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, UnicodeError) as problem:
        why = getattr(problem, "strerror", None) or "no answer"
        raise MaskwalkError(
            f"There is no Ray cluster to use at {address}: {why}. Start one with "
            "`ray start --head`, or leave --address out."
        ) from None


def connect(cluster: Cluster) -> Any:
    """Ray, connected to the cluster; stays so until the process ends."""
    address = cluster.address or os.environ.get("RAY_ADDRESS")
    if address is not None and address.startswith("ray://"):
        raise MaskwalkError(
            f"{address} is the address of a Ray client; run the command on a node of the cluster "
            "(or with `ray job submit`), with --address auto or HOST:PORT."
        )
    ray = load_ray()
    if ray.is_initialized():
        known = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", known):
            raise MaskwalkError(f"This process is connected to the Ray cluster {known} already.")
        return ray
    if address not in (None, "auto", "local"):
        check_address(str(address))
    _quiet(ray)
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        cores = max(cluster.workers or 1, os.cpu_count() or 1)
        options |= {"num_cpus": cores, "include_dashboard": False}
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError) as problem:
        first = next((line for line in str(problem).splitlines() if line.strip()), "no answer")
        raise MaskwalkError(
            f"There is no Ray cluster to use at {address or 'this machine'}: {first.strip()[:200]} "
            "Start one with `ray start --head`, or leave --address out."
        ) from None
    return ray


def _quiet(ray: Any) -> None:
    """Ray tells of every worker that is lost on stdout, where results belong."""
    private = getattr(getattr(ray, "_private", None), "worker", None)
    if private is not None and hasattr(private, "print_to_stdstream"):
        private.print_to_stdstream = lambda *_, **__: None
