"""Data-parallel training: every process takes its share of each batch, gradients are summed.

Started by `torchrun`, or by `launch`. The random numbers of a sample depend on its place in the
whole batch, so the processes together see the batch that one process would.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

from torch.multiprocessing.spawn import spawn

from maskwalk.errors import MaskwalkError, whole


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
