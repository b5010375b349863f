"""A worker on a node of the cluster: a Ray actor that runs one job after another.

What jobs need is unpacked and imported before it is ready; models stay loaded from one job to the
next (cell.py). A result travels back as the line that a worker process would write (workers.py),
and with it the files that a job leaves: nodes need no common disk.
"""

import os
import platform
import sys
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskwalk.bench.cluster.parcel import Parcel, unpack
from maskwalk.bench.run import attempt, function_named
from maskwalk.bench.workers import line_of, prepare
from maskwalk.errors import MaskwalkError
from maskwalk.resources import PACKAGE, shipped

Files = dict[str, bytes]


@cache
def versions() -> dict[str, str]:
    """What has to be the same on all nodes for results to be the same."""
    code = sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        code.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    manifest = shipped("zoo") / "manifest.json"
    code.update(manifest.read_bytes() if manifest.exists() else b"")
    return {
        "maskwalk": code.hexdigest()[:16],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


class Worker:
    """The actor; its constructor cannot fail, so that what goes wrong is told by `ready`."""

    def __init__(self, device: str, functions: list[str], parcel: Parcel, neighbours: int) -> None:
        self.device, self.functions, self.parcel = device, functions, parcel
        self.neighbours = neighbours  # workers that share this node's memory

    def ready(self) -> dict[str, Any]:
        """Gets everything a job needs; versions and process, or why it cannot work."""
        os.environ["MASKWALK_PROCESSES"] = str(self.neighbours)
        sys.stdout = sys.stderr  # what a user's file prints is no answer
        about = {"versions": versions(), "host": platform.node(), "node": _node()}
        try:
            _check_device(self.device)
            prepare(unpack(self.parcel))
            for name in self.functions:
                function_named(name)
        except MaskwalkError as problem:
            return about | {"failure": str(problem)}
        return about

    def work(self, function: str, arguments: dict[str, Any], leaves: str) -> tuple[str, Files]:
        """A job's result as a line of JSON, and the files it left in the folder it was given."""
        if not leaves or arguments.get(leaves) is None:
            return line_of(attempt(function, arguments, self.device)), {}
        with tempfile.TemporaryDirectory() as folder:
            line = line_of(attempt(function, {**arguments, leaves: folder}, self.device))
            paths = [path for path in Path(folder).rglob("*") if path.is_file()]
            return line, {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _node() -> str:
    """The node's name in the cluster."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise MaskwalkError(
            f"--device {device} is not usable on {platform.node()}; use cpu, or give the cluster "
            "nodes that have one."
        ) from None
