"""Jobs on a real Ray cluster whose workers, nodes and driver are killed (-9).

What a single process writes comes out: the same bytes, once the lines are in the order of the cells
and without what a clock says. No line is lost, and none is written twice.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.cell import Cell
from maskwalk.bench.cluster import crew as crews
from maskwalk.bench.cluster.connection import Cluster, connect
from maskwalk.bench.cluster.crew import Crew
from maskwalk.bench.cluster.engine import OnRay
from maskwalk.bench.diagnosis import jobs as diagnosis
from maskwalk.bench.experiment import load_experiment
from maskwalk.bench.plan import Job
from maskwalk.bench.run import Failure, Run, here
from maskwalk.bench.text_experiment import TextExperiment
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.resolve import DENOISERS
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import load_plugin
from tests.faults.commands import BENCH
from tests.faults.nodes import Nodes
from tests.faults.server import environment
from tests.faults.test_workers import BAD
from tests.tiny_books import for_session

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray leaves files and sockets open
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


def lines(out: Path) -> list[str]:
    """The records in the order of their cells, as JSON without what a clock says."""
    rows = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert len({row["key"] for row in rows}) == len(rows), "a record stands there twice"
    return [json.dumps(row | {"seconds": 0}) for row in sorted(rows, key=lambda row: row["cell"])]


def written(experiment: Any, out: Path, engine: Any) -> list[str]:
    for _ in Run(experiment.jobs(out), out / "records.jsonl", engine):
        pass
    return lines(out)


WORLD = "walk(graph=st_er(nodes=5, p=0.2), law=lazy(), length=4)"


def slow_experiment(folder: Path, cells: int) -> Path:
    """Slow cells, and one of a small model that is named by a relative path."""
    samplers = [f"slow(number={number})" for number in range(cells)]
    (folder / "e.toml").write_text(
        f'count = 4\nmetrics = ["calls", "coherence"]\nsamplers = {json.dumps(samplers)}\n'
        f'[[worlds]]\nworld = "{WORLD}"\n'
        f'[[worlds]]\nworld = "{WORLD}"\nsamplers = ["bisection"]\ndenoisers = ["model"]\n'
    )
    config = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)
    weights = layout(config).initial([0])[0]
    save_pretrained(Pretrained(config, weights, {"world": WORLD}), folder / "model")
    return folder / "e.toml"


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The plug-in, with a module beside it that it imports; its folder is where we are."""
    helper = f"helper_{tmp_path.name}"
    (tmp_path / f"{helper}.py").write_text(HELPER)
    (tmp_path / "slow.py").write_text(SLOW.format(helper=helper))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    load_plugin(str(tmp_path / "slow.py"))
    yield tmp_path / "slow.py"
    del SAMPLERS._members["slow"]


def test_workers_and_nodes_that_go_change_nothing(
    nodes: Nodes, tmp_path: Path, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed, a node goes with its worker, another one comes; half a GPU each."""
    experiment = load_experiment(slow_experiment(tmp_path, 12))
    flying, free, hand_out = [], [], Crew._hand_out

    def watched(crew: Crew) -> None:
        if flying or len(crew.idle) == 3:  # all are there before the first job is given out
            hand_out(crew)
            flying.append(len(crew.busy))

    monkeypatch.setattr(Crew, "_hand_out", watched)
    out = tmp_path / "ray"
    engine = OnRay(Cluster(nodes.address, gpus=0.5), plugins=[str(slow)], timeout=300)
    run, words = Run(experiment.jobs(out), out / "records.jsonl", engine), set()
    for number, _ in enumerate(run):
        words.add(run.where)
        if number == 2:
            os.kill(nodes.workers()[0], signal.SIGKILL)
        if number == 6:
            nodes.remove(nodes.nodes[0])
            nodes.nodes.append(nodes.add())
        free.append(ray.available_resources().get("GPU", 0.0))
    assert lines(out) == written(experiment, tmp_path / "one", here())
    assert len(lines(out)) == 13 and not (out / "skipped.jsonl").exists()
    assert max(flying) == 3, "one job a worker, however many there are"
    assert min(free) == 0.5, "three halves of two GPUs are taken"
    assert "3 workers on 2 nodes" in words


LOADED = '''
"""Two denoisers that say in which process they were made."""
import os
from maskwalk.denoisers.resolve import DENOISERS

def made(world, name):
    with open({log!r}, "a") as file:
        file.write(f"{{name}} {{os.getpid()}}\\n")
    return world.oracle()

DENOISERS.register("mine_a")(lambda world: made(world, "a"))
DENOISERS.register("mine_b")(lambda world: made(world, "b"))
'''


def test_a_worker_loads_each_model_once(nodes: Nodes, tmp_path: Path) -> None:
    """However many of its cells a worker is given."""
    log, source = tmp_path / "made", tmp_path / "loaded.py"
    source.write_text(LOADED.format(log=str(log)))
    load_plugin(str(source))
    samplers = [f"random(block={n})" for n in (1, 2, 3, 4)]
    (tmp_path / "e.toml").write_text(
        f'count = 2\nmetrics = ["calls"]\nsamplers = {samplers}\n'
        f'[[worlds]]\nworld = "{WORLD}"\ndenoisers = ["mine_a", "mine_b"]\n'
    )
    engine = OnRay(Cluster(nodes.address, workers=2), plugins=[str(source)])
    try:
        assert len(written(load_experiment(tmp_path / "e.toml"), tmp_path / "ray", engine)) == 8
    finally:
        for name in ("mine_a", "mine_b"):
            del DENOISERS._members[name]
    loads = log.read_text().splitlines()
    assert len(loads) == len(set(loads)) <= 4 and {load[0] for load in loads} == {"a", "b"}


def test_a_driver_that_is_killed_goes_on(nodes: Nodes, tmp_path: Path, slow: Path) -> None:
    """Its workers end with it; the same command does the rest, and nothing again."""
    file, out = slow_experiment(tmp_path, 40), tmp_path / "ray"
    words = [sys.executable, "-m", "maskwalk", "bench", str(file), "--out", str(out)]
    words += ["--include", str(slow), "--engine", "ray", "--address", nodes.address]
    env = environment() | {"PYTHONPATH": f"{environment()['PYTHONPATH']}{os.pathsep}{tmp_path}"}
    records, deadline = out / "records.jsonl", time.monotonic() + 120
    with (tmp_path / "said").open("wb") as said:
        driver = subprocess.Popen(
            [*words, "--workers", "1"], cwd=tmp_path, env=env, stdout=said, stderr=said
        )
    while not (records.exists() and records.read_bytes().count(b"\n") > 2):
        alive = driver.poll() is None and time.monotonic() < deadline
        assert alive, (tmp_path / "said").read_text()
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    before = records.read_bytes()
    kept = before.count(b"\n")
    assert 2 < kept < 41
    deadline = time.monotonic() + 60
    while nodes.workers():
        assert time.monotonic() < deadline, "a worker outlives its driver"
        time.sleep(0.05)
    experiment = load_experiment(file)
    engine = OnRay(Cluster(nodes.address, workers=1), plugins=[str(slow)])
    run = Run(experiment.jobs(out), records, engine)
    assert sum(1 for _ in run) == 41 - kept
    assert records.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert lines(out) == written(experiment, tmp_path / "one", here())


def test_a_deadly_cell_and_one_without_an_end(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs itself and the workers that had it; what a file prints is no answer."""
    monkeypatch.setattr(crews, "DEATHS", 1)
    (tmp_path / "bad.py").write_text(BAD)
    load_plugin(str(tmp_path / "bad.py"))
    names = ["bad_dead", "bad_error", "bisection", "bad_loop"]
    cells = [Cell.checked(world=WORLD, task="unconditional", sampler=s, count=2) for s in names]
    for name in [name for name in SAMPLERS if name.startswith("bad_")]:
        del SAMPLERS._members[name]
    jobs = [Job(s, "cell", {"cell": asdict(c), "traces": False}) for s, c in zip(names, cells)]
    place = Cluster(nodes.address, workers=1)
    engine = OnRay(place, plugins=[str(tmp_path / "bad.py")], timeout=3)
    found = {job.key: answer for job, answer in engine(jobs)}
    assert list(found) == names
    reasons = {key: getattr(answer, "reason", "") for key, answer in found.items()}
    assert reasons["bad_loop"] == "It took longer than 3 s."
    assert "KeyError: 'mine'" in reasons["bad_error"] and "worker died" in reasons["bad_dead"]
    assert "another key" in reasons["bisection"], "a result that is not of its job is no result"


def test_every_kind_of_job_and_the_files_it_leaves(
    nodes: Nodes, tmp_path: Path, tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts, losses and baselines; the texts kept for a judge come to the driver's disk."""
    pytest.importorskip("transformers")
    shutil.copytree(for_session(tmp_path_factory).models, tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    cell = Cell.checked(world=WORLD, task="unconditional", sampler="random(block=2)", count=4)

    def results(out: str, engine: Any) -> dict[str, Any]:
        texts = TextExperiment(
            *("t", "t", "models/mdm", "models/ar", ("exact",), ("bisection(order=1)",)),
            judge=("all",),
            length=16,
            count=2,
            replayed=1,
            paths=1,
            judged=2,
            references=2,
        )
        others = diagnosis(cell, ["random(block=2)"], 1, (), "cpu")
        baseline = Job(cell.key, "outcome", {"cell": asdict(cell)})
        jobs = [*texts.jobs(Path(out)), *others]
        return {job.key: answer for job, answer in engine([*jobs, baseline])}

    there = results("ray", OnRay(Cluster(nodes.address, workers=1)))
    alone = results("one", here())
    clock = {"seconds": 0}
    assert there.keys() == alone.keys() and len(there) == 4
    assert not any(isinstance(answer, Failure) for answer in there.values()), there
    for key in alone:
        plain = json.loads(json.dumps(alone[key]))
        assert there[key].get("record", {}) | clock == plain.get("record", {}) | clock
        assert {**there[key], "record": 0, **clock} == {**plain, "record": 0, **clock}
    names = sorted(path.name for path in Path("one/samples").iterdir())
    assert names == sorted(path.name for path in Path("ray/samples").iterdir()) and len(names) == 4
    for name in names:
        assert Path("one/samples", name).read_bytes() == Path("ray/samples", name).read_bytes()


def test_what_no_node_has_room_for(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and ends after a while."""
    for name, seconds in (("EVERY", 0.1), ("WAITED", 0.2), ("PATIENCE", 0.6)):
        monkeypatch.setattr(crews, name, seconds)
    cell = Cell.checked(world=WORLD, task="unconditional", sampler="bisection", count=2)
    job, said = Job(cell.key, "cell", {"cell": asdict(cell), "traces": False}), []
    engine = OnRay(Cluster(nodes.address, gpus=4), say=said.append)
    with pytest.raises(MaskwalkError, match=r"No node .* \(a processor core and 4 of a GPU\)"):
        list(engine([job]))
    assert len(said) == 1 and "Waiting for a worker" in said[0]


@pytest.mark.parametrize("command", ["bench", "diagnose", "reproduce", "text", "evaluate"])
def test_every_command_has_the_flag(nodes: Nodes, cli: Any, tmp_path: Path, command: str) -> None:
    """Its address reaches the engine: this process has another cluster."""
    (tmp_path / "b.toml").write_text(BENCH)
    out = ("--out", str(tmp_path / "out"))
    words = {
        "bench": ("bench", str(tmp_path / "b.toml"), *out),
        "diagnose": ("diagnose", "--world", WORLD, "--samplers", "bisection"),
        "reproduce": ("reproduce", "paper", "--quick", "--only", "table_endpoints", *out),
        "text": ("reproduce", "paper", "--quick", "--only", "figure_language", *out),
        "evaluate": ("evaluate", "bisection"),
    }[command]
    code, _, err = cli(*words, "--engine", "ray", "--address", "192.0.2.1:6379")
    assert code == 2 and f"connected to the Ray cluster {nodes.address} already" in err, err
