"""A Ray cluster of several nodes on this machine, and the processes of our workers on them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Nodes:
    """A cluster on this machine: a head for the driver, nodes that are added and removed."""

    def __init__(self, cores: tuple[int, ...] = (1, 2)) -> None:
        from ray.cluster_utils import Cluster as Local

        os.environ.update({"RAY_worker_niceness": "0"})  # as quick as all else on this machine
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8}
        self.local = Local(initialize_head=True, head_node_args=head)
        self.nodes = [self.add(number) for number in cores]
        self.address = str(self.local.address)

    def add(self, num_cpus: int = 1) -> Any:
        """A node with a logical GPU."""
        return self.local.add_node(num_cpus=num_cpus, num_gpus=1, object_store_memory=10**8)

    def remove(self, node: Any) -> None:
        """At once, as a machine that is switched off."""
        self.local.remove_node(node, allow_graceful=False)
        self.nodes.remove(node)

    def workers(self, title: bytes = b"ray::Worker") -> list[int]:
        """The processes of our actors on the nodes; `ray::IDLE`: those that are not yet one."""
        raylets = {node.all_processes["raylet"][0].process.pid for node in self.nodes}
        return [pid for pid in _processes(title) if _parent(pid) in raylets]


def _processes(title: bytes) -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().startswith(title):
                yield int(place.parent.name)
        except OSError:
            continue


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
