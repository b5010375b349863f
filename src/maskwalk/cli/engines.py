"""Where a command's jobs run: processes of this machine, or a Ray cluster (`--engine`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from maskwalk.cli.common import MACHINES, check_device, err
from maskwalk.errors import MaskwalkError, one_of, whole

if TYPE_CHECKING:
    from maskwalk.bench.cluster.engine import OnRay
    from maskwalk.bench.run import Engine

PROCESSES, RAY = "processes", "ray"
Workers = Annotated[
    int | None,
    typer.Option(
        help="Processes [1], or workers of a cluster \\[all]; the numbers are the same.",
        rich_help_panel=MACHINES,
    ),
]
Name = Annotated[
    str,
    typer.Option(
        "--engine",
        help="processes, or ray: a cluster (pip install 'maskwalk\\[ray]'; docs/scale.md).",
        rich_help_panel=MACHINES,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="… of ray: the cluster, auto or HOST:PORT; without it, one on this machine.",
        rich_help_panel=MACHINES,
    ),
]
Gpus = Annotated[
    float | None,
    typer.Option(
        help="… of ray: GPUs a worker takes, 0.5 for half of one [1 with --device cuda].",
        rich_help_panel=MACHINES,
    ),
]


def engine_named(
    name: str,
    workers: int | None,
    device: str = "cpu",
    plugins: Sequence[str] = (),
    timeout: float | None = None,
    address: str | None = None,
    gpus: float | None = None,
    default: int = 1,
) -> "Engine":
    """The engine that the options describe; without `workers`, so many processes by default."""
    from maskwalk.bench.run import engine

    if workers is not None:
        whole("workers", workers, 1)
    cluster = cluster_named(name, workers, plugins, timeout, address, gpus, device)
    return cluster or engine(workers or default, check_device(device), plugins, timeout)


def cluster_named(
    name: str,
    workers: int | None,
    plugins: Sequence[str] = (),
    timeout: float | None = None,
    address: str | None = None,
    gpus: float | None = None,
    device: str = "cpu",
) -> "OnRay | None":
    """The cluster that the options describe, whose devices need not be here; None: processes."""
    if one_of("--engine", name, (PROCESSES, RAY)) == PROCESSES:
        for option, given in (("--address", address), ("--gpus", gpus)):
            if given is not None:
                raise MaskwalkError(f"{option} belongs to --engine ray.")
        return None
    from maskwalk.bench.cluster.connection import Cluster, load_ray
    from maskwalk.bench.cluster.engine import OnRay

    if device not in ("cpu", "cuda"):
        raise MaskwalkError(f"--device is cpu or cuda with --engine ray, not {device}.")
    load_ray()
    share = (1.0 if device == "cuda" else 0.0) if gpus is None else gpus
    return OnRay(Cluster(address, workers, share), device, plugins, timeout, _say)


def _say(line: str) -> None:
    err.print(line, style="yellow", soft_wrap=True)
