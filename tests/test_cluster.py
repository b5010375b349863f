"""What `--engine ray` decides without a cluster: how many workers fit, which files travel, and what
is refused in a sentence. tests/faults/test_cluster.py has a real one.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwalk.bench.beside import Beside
from maskwalk.bench.cell import Cell
from maskwalk.bench.cluster import parcel as parcels
from maskwalk.bench.cluster.connection import Cluster, connect
from maskwalk.bench.cluster.parcel import pack, unpack
from maskwalk.bench.cluster.results import check_versions
from maskwalk.bench.cluster.worker import versions
from maskwalk.bench.plan import Job
from maskwalk.bench.run import here
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.specs import load_plugin
from tests.text_files import own_model

WORLD = "walk(graph=file(path='edges.txt'), law=lazy(), length=4)"


@pytest.mark.parametrize(
    ("gpus", "cores", "devices", "fit"),
    [(0, 4, 0, 4), (1, 4, 2, 2), (0.5, 16, 2, 4), (0.4, 16, 2, 4), (0.1, 16, 1, 10), (2, 8, 3, 1)],
)
def test_how_many_workers_fit_on_a_node(gpus: float, cores: int, devices: int, fit: int) -> None:
    """A core each; no part of a GPU lies on two."""
    node = {"Alive": True, "Resources": {"CPU": float(cores), "GPU": float(devices)}}
    assert Cluster(gpus=gpus).slots(node) == fit
    assert Cluster(gpus=gpus).slots(node | {"Alive": False}) == 0
    assert Cluster(gpus=gpus).slots({"Alive": True, "Resources": {"CPU": 1.0, "GPU": 9.0}}) == 1
    assert Cluster(gpus=gpus).slots({"Alive": True, "Resources": {"memory": 1e9}}) == 0


@pytest.mark.parametrize("gpus", [-1, 1.5, 1e-5, float("nan")])
def test_a_share_that_ray_cannot_give_is_refused(gpus: float) -> None:
    with pytest.raises(MaskwalkError, match="gpus must be"):
        Cluster(gpus=gpus)


def test_options_that_do_not_fit_are_refused(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", "experiments/quickstart.toml", "--out", str(tmp_path))
    for more, sentence in (
        (("--address", "auto"), "--address belongs to --engine ray."),
        (("--gpus", "1"), "--gpus belongs to --engine ray."),
        (("--engine", "rai"), "Did you mean 'ray'?"),
        (("--engine", "ray", "--workers", "0"), "workers must be a whole number at least 1"),
        (("--engine", "ray", "--device", "cuda:1"), "--device is cpu or cuda with --engine ray"),
    ):
        code, _, err = cli(*words, *more)
        assert code == 2 and sentence in " ".join(err.split()), (more, err)
    texts = (str(tmp_path / "q.jsonl"), "--denoiser", "zoo:books_mdm")
    (tmp_path / "q.jsonl").write_text('{"prompt": "a", "answer": "b"}')
    for words_of in (
        ("text", "score", *texts),
        ("tune", *texts[1:]),
        ("evaluate", "entropy(block=2)", *texts[1:]),
    ):
        for more, sentence in (
            (("--engine", "rai"), "Did you mean 'ray'?"),
            (("--address", "auto"), "--address belongs to --engine ray."),
        ):
            code, _, err = cli(*words_of, *more)
            assert code == 2 and sentence in " ".join(err.split()), (words_of, err)
    with pytest.raises(MaskwalkError, match="run the command on a node of the cluster"):
        connect(Cluster("ray://head:10001"))
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = cli(*words, "--engine", "ray")
    assert code == 2 and "pip install 'maskwalk[ray]'" in " ".join(err.split())


# ---- files


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """A cell of a model and a graph that lie in the folder where we are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path / "cache"))
    Path("edges.txt").write_text("0 1\n1 2\n2 3\n3 4\n")
    config = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)
    world = Cell.checked(world=WORLD, task="unconditional", sampler="bisection").world
    weights = layout(config).initial([0])[0]
    save_pretrained(Pretrained(config, weights, {"world": world}), Path("models/mine"))
    Path("models/mine/checkpoint-1").mkdir()
    Path("models/mine/checkpoint-1/state.json").write_text("{}")
    return Cell.checked(task="unconditional", sampler="bisection", denoiser="models/mine", count=2)


def job(cell: Cell) -> Job:
    return Job(cell.key, "cell", {"cell": asdict(cell), "traces": False})


def test_files_with_a_relative_path_travel(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell finds its model, graph and plug-in in the folder of the parcel, and is the same."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "mine.py").write_text("import sys\n")
    load_plugin("src/mine.py")
    parcel = pack([job(cell)], ["src/mine.py"])
    names = {"edges.txt", "models/mine/model.json", "models/mine/model.safetensors"}
    assert set(parcel.files) == names | {".plugins/0/mine.py"} and not parcel.there
    alone = next(iter(here()([job(cell)])))[1]
    for name in ("edges.txt", "models/mine/model.safetensors"):
        Path(name).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        assert unpack(parcel) == [".plugins/0/mine.py"] and Path(".plugins/0/mine.py").exists()
        assert sys.path[0] == str(Path.cwd() / ".plugins" / "0")
    assert Path.cwd().parent == tmp_path / "cache" / "cluster"
    _, there = next(iter(here()([job(cell)])))
    assert isinstance(there, dict) and {**there, "seconds": 0} == {**alone, "seconds": 0}
    first = Path.cwd().stat().st_ino
    unpack(parcel)  # a second worker of the node
    assert Path.cwd().stat().st_ino == first
    assert len(list((tmp_path / "cache" / "cluster").iterdir())) == 1


def test_what_a_job_on_text_names_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of an hf: model, a file with a function, texts and questions."""
    monkeypatch.chdir(tmp_path)
    Path("llada").mkdir()
    for name in ("llada/config.json", "own.py", "texts.txt", "score"):
        Path(name).write_text("{}")
    arguments = {
        "subject": {"model": "hf:llada", "texts": "texts.txt"},
        "sampler": "random(block=1)",
    }
    more = {"model": "own.py:model", "pattern": "x" * 5000, "until": ["\n", "\0"]}
    parcel = pack([Job("a", "tune_text", arguments), Job("b", "score", more)])
    assert set(parcel.files) == {"llada/config.json", "texts.txt", "own.py"}
    assert set(pack([Job("c", "score", {"model": "hf:gpt2"})]).files) == set()


def test_an_absolute_path_has_to_be_on_every_node(cell: Cell, tmp_path: Path) -> None:
    mine = str(tmp_path / "models" / "mine")
    parcel = pack([job(Cell.from_json({**asdict(cell), "denoiser": mine}))])
    assert set(parcel.there) == {mine} and set(parcel.files) == {"edges.txt"}
    unpack(parcel)
    weights = Path(mine, "model.safetensors").read_bytes()
    for data in (weights + b"x", None):
        Path(mine, "model.safetensors").unlink()
        if data is not None:
            Path(mine, "model.safetensors").write_bytes(data)
        with pytest.raises(MaskwalkError, match=r"has no .*mine, or another version of it\. Put"):
            unpack(parcel)


def test_what_is_too_large_is_not_sent(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "MOST", 100)
    with pytest.raises(MaskwalkError, match=r"With models/mine there are .* absolute path"):
        pack([job(cell)])


def test_a_zoo_of_ones_own_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path / "cache"))
    Path("zoo").mkdir()
    Path("zoo/manifest.json").write_text("{}")
    monkeypatch.setenv("MASKWALK_ZOO", "zoo")
    parcel = pack([])
    monkeypatch.delenv("MASKWALK_ZOO")
    unpack(parcel)
    assert os.environ["MASKWALK_ZOO"] == "zoo" and Path("zoo/manifest.json").exists()
    monkeypatch.delenv("MASKWALK_ZOO")


def test_a_node_with_another_version_is_refused() -> None:
    check_versions({"host": "a", "versions": versions()})
    for name in ("maskwalk", "torch"):
        with pytest.raises(MaskwalkError, match=f"The node b has {name} 0, this machine has"):
            check_versions({"host": "b", "versions": versions() | {name: "0"}})


# ---- an engine beside something else


def test_an_engine_beside_something_else(cell: Cell) -> None:
    """The same answers; what the engine raises is raised to who waits for them."""
    jobs = [job(cell), Job("bad", "cell", {"cell": {}, "traces": False})]
    with Beside(here(), jobs) as team:
        answers = {done.key: answer for done, answer in team}
    assert answers[cell.key]["key"] == cell.key and "KeyError" in answers["bad"].reason

    def broken(some: Any) -> Any:
        yield from here()(some[:1])
        raise MaskwalkError("gone")

    with Beside(broken, jobs) as team, pytest.raises(MaskwalkError, match="gone"):
        list(team)
    assert team.ready() == 0


# ---- commands on text


class Recorder:
    """An engine that runs jobs here and notes them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.state = ""

    def __call__(self, jobs: Any) -> Any:
        self.done += [job.function for job in jobs]
        yield from here()(jobs)


def test_jobs_on_text_go_to_the_engine(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`text score`, `tune`, and the baselines of `evaluate`; a policy itself runs here."""
    np.save(tmp_path / "tokens.npy", np.arange(48).reshape(8, 6) * 7 % 4)
    rows = [{"template": "12{2}046", "answer": "34"}]
    (tmp_path / "q.jsonl").write_text(json.dumps(rows[0]))
    own = ("--denoiser", f"{own_model(tmp_path)}:model", "--texts", str(tmp_path / "tokens.npy"))
    own += ("--length", "6", "--count", "4", "--written", "2", "--paths", "1")
    sums = ("--denoiser", "oracle", "--world", "addition(digits=2)", "--sampler", "left_to_right")
    for words, function in (
        (("text", "score", str(tmp_path / "q.jsonl"), *sums), "score"),
        (("tune", *own, "--calls", "3", "--samplers", "random(block=2)"), "tune_text"),
        (("evaluate", "entropy(block=2)", *own), "tune_text"),
    ):
        place = Recorder()
        monkeypatch.setattr("maskwalk.cli.engines.cluster_named", lambda *_, p=place: p)
        code, _, err = cli(*words, "--engine", "ray", "--json")
        assert code == 0 and place.done and set(place.done) == {function}, (words, err)
