"""Cells on a real Ray cluster of three nodes whose workers, nodes and driver are killed.

What a single process writes comes out, byte for byte once the lines are in the order of the cells
and without what a clock says; no line is lost, and none is written twice.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.cluster.connection import Cluster, connect
from maskwalk.bench.cluster import engine as cluster_engine
from maskwalk.bench.cluster.engine import OnRay, _Crew
from maskwalk.bench.experiment import load_experiment
from maskwalk.bench.records import as_written
from maskwalk.bench.run import Failure, Run
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.specs import load_plugin
from tests.faults.commands import ROOT
from tests.faults.server import environment
from tests.faults.test_workers import BAD

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own
HELPER = "PAUSE = 0.15\n"
SLOW = '''
"""A sampler that takes its time, with a module beside it."""
import time
from dataclasses import dataclass
from maskwalk import UnmaskingPolicy
from maskwalk.samplers import SAMPLERS
from {helper} import PAUSE

@SAMPLERS.register("slow")
@dataclass(frozen=True)
class Slow(UnmaskingPolicy):
    """All at once, after a while."""
    number: int = 0
    def choose(self, view, state, rng):
        time.sleep(PAUSE)
        return view.masked, state
'''


class Nodes:
    """A cluster on this machine: a head for the driver, nodes that are added and removed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Local

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8}
        self.local = Local(initialize_head=True, head_node_args=head)
        self.nodes = [self.add(), self.add(num_gpus=1, num_cpus=2)]
        self.address = str(self.local.address)

    def add(self, **more: Any) -> Any:
        return self.local.add_node(**{"num_cpus": 1, "object_store_memory": 10**8, **more})

    def remove(self, node: Any) -> None:
        self.local.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    before = dict(os.environ)
    os.environ.update(environment())
    cluster = Nodes()
    connect(Cluster(cluster.address))
    yield cluster
    ray.shutdown()
    cluster.local.shutdown()
    os.environ.clear()
    os.environ.update(before)


def worker_processes() -> list[int]:
    """The processes of our workers, by their title."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().startswith(b"ray::Worker"):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def lines(out: Path) -> list[str]:
    """The records in the order of their cells, as JSON without what a clock says."""
    rows = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert len({row["key"] for row in rows}) == len(rows)
    return [json.dumps(row | {"seconds": 0}) for row in sorted(rows, key=lambda row: row["cell"])]


def slow_experiment(folder: Path, cells: int) -> Path:
    """Slow cells and a few of a small model that is named by a relative path."""
    file, world = folder / "e.toml", "walk(graph=st_er(nodes=5, p=0.2), law=lazy(), length=4)"
    samplers = [f"slow(number={number})" for number in range(cells)]
    file.write_text(
        f'count = 4\nmetrics = ["calls", "coherence"]\nsamplers = {json.dumps(samplers)}\n'
        f'[[worlds]]\nworld = "{world}"\n'
        f'[[worlds]]\nworld = "{world}"\nsamplers = ["bisection"]\ndenoisers = ["model"]\n'
    )
    config = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)
    about = {"world": world}
    save_pretrained(Pretrained(config, layout(config).initial([0])[0], about), folder / "model")
    return file


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The plug-in, with the module it imports from its folder; the folder is where we are."""
    helper = f"helper_{tmp_path.name}"
    (tmp_path / f"{helper}.py").write_text(HELPER)
    (tmp_path / "slow.py").write_text(SLOW.format(helper=helper))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    load_plugin(str(tmp_path / "slow.py"))
    yield tmp_path / "slow.py"
    from maskwalk.samplers import SAMPLERS

    del SAMPLERS._members["slow"]


def test_workers_and_nodes_that_go_change_nothing(
    nodes: Nodes, tmp_path: Path, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed twice, a node goes with its workers, another one comes."""
    experiment = load_experiment(slow_experiment(tmp_path, 24))
    for _ in Run(experiment.jobs(tmp_path / "one"), tmp_path / "one" / "records.jsonl"):
        pass
    flying: list[int] = []
    hand_out = _Crew._hand_out

    def watched(crew: _Crew) -> None:
        hand_out(crew)
        flying.append(len(crew.busy))

    monkeypatch.setattr(_Crew, "_hand_out", watched)
    out = tmp_path / "ray"
    engine = OnRay(Cluster(nodes.address), plugins=[str(slow)])
    run = Run(experiment.jobs(out), out / "records.jsonl", engine)
    states = set()
    for number, _ in enumerate(run):
        states.add(engine.state)
        if number in (2, 8):
            os.kill(worker_processes()[0], signal.SIGKILL)
        if number == 5:
            nodes.remove(nodes.nodes[0])
            nodes.nodes[0] = nodes.add()
    assert lines(out) == lines(tmp_path / "one") and len(lines(out)) == 25
    assert max(flying) == 3, "one job a worker, however many there are"
    assert not (out / "skipped.jsonl").exists()
