"""Data-parallel training: every process takes its share of each batch, gradients are summed.

Started by `torchrun`, or by `launch`. The random numbers of a sample depend on its place in the
whole batch, so the processes together see the batch that one process would.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from maskwalk.errors import MaskwalkError, whole


class Group:
    """This process's place among those that train together; a context manager."""

    def __init__(self, device: str) -> None:
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        on_cuda = device.startswith("cuda")
        local = int(os.environ.get("LOCAL_RANK", self.rank))
        self.device = f"cuda:{local}" if on_cuda and self.world > 1 else device
        self._mine = self.world > 1 and not dist.is_initialized()
        if self._mine:
            if on_cuda:
                torch.cuda.set_device(self.device)
            dist.init_process_group("nccl" if on_cuda else "gloo")

    @property
    def first(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all processes are here."""
        if self.world > 1:
            dist.barrier()

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._mine:
            dist.destroy_process_group()


def _start(rank: int, target: Callable[..., Any], world: int, port: int, args: Any) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    target(*args)


def launch(target: Callable[..., Any], devices: int, *args: Any) -> None:
    """Calls target(*args) in `devices` processes that train together (in this one if 1)."""
    whole("devices", devices, 1)
    if devices == 1 or "WORLD_SIZE" in os.environ:
        target(*args)
        return
    start: Any = spawn
    try:
        start(_start, (target, devices, free_port(), args), nprocs=devices)
    except Exception as problem:  # the child's traceback comes as text in the exception
        last = (str(problem).strip().splitlines() or [repr(problem)])[-1]
        raise MaskwalkError(f"A training process failed: {last}") from problem


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
