"""Experiments: pure cells, any number of workers, kills, full disks."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.experiment import Experiment
from maskwalk.bench.records import RecordFile, load_records, upgrade
from maskwalk.bench.run import Run, engine
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.world import walk_world

SMALL = """
name = "small"
length = 8
count = 16
samplers = ["random(block=2)", "bisection", "entropy(block='exponential')"]

[[graphs]]
title = "tree"
graph = "st_er(nodes=20, p=0.0)"
walk = "lazy(stay=0.5)"
tasks = ["unconditional", {task = "endpoints", count = 8, per_prompt = 3}]

[[graphs]]
graph = "two_communities(nodes=10, p=0.2, bridges=2)"
walk = "lazy()"
presets = ["exact", "as_published"]
tasks = ["bottleneck"]
"""
CELLS = 3 * 2 + 3 * 2


def run_of(experiment: Experiment, out: Path, workers: int = 1) -> Run:
    return Run(experiment.jobs(out), out / "records.jsonl", engine(workers))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def numbers(directory: Path) -> list[str]:
    kept = [
        {k: v for k, v in r.items() if k not in ("seconds", "commit")}
        for r in load_records(directory)
    ]
    return [json.dumps(r, sort_keys=True) for r in kept]


def test_an_experiment_is_the_product_of_what_it_names(file: Path, tmp_path: Path) -> None:
    experiment = Experiment.load(file)
    assert len(experiment.cells) == CELLS and experiment.entries[0].title == "tree"
    own = [c for c in experiment.cells if c.task.startswith("endpoints")]
    assert all((c.count, c.per_prompt) == (8, 3) for c in own) and len(own) == 3
    run = run_of(experiment, tmp_path / "one")
    records = list(run)
    assert run.done == run.total == CELLS == len(records)
    for record in records:
        if record["sampler"].startswith("bisection"):
            assert record["metrics"]["coherence"]["value"] == 1.0
        assert (record["metrics"]["tv1"] is None) == (not record["task"].startswith("uncond"))
        assert record["trace"] is not None


def test_the_same_numbers_with_any_number_of_workers(file: Path, tmp_path: Path) -> None:
    list(run_of(Experiment.load(file), tmp_path / "one"))
    list(run_of(Experiment.load(file), tmp_path / "two", workers=2))
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")


def test_resume_after_an_unfinished_line(file: Path, tmp_path: Path) -> None:
    experiment, out = Experiment.load(file), tmp_path / "run"
    list(run_of(experiment, out))
    whole = numbers(out)
    path = out / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    assert len(load_records(out)) == 5
    again = list(run_of(experiment, out))
    assert len(again) == CELLS - 5
    assert numbers(out) == whole


def test_a_killed_run_goes_on_with_nothing_done_twice(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "maskwalk", "bench", str(file), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = out / "records.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (path.exists() and path.stat().st_size):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = len(load_records(out))
    rest = list(run_of(Experiment.load(file), out))
    assert before >= 1 and before + len(rest) == CELLS
    keys = [r["key"] for r in load_records(out)]
    assert len(keys) == len(set(keys)) == CELLS


def test_a_full_disk_keeps_the_records_before_it(file: Path, tmp_path: Path) -> None:
    """A file-size limit stands in for the disk: the write fails in the middle of a record."""
    out = tmp_path / "full"
    code = (
        "import resource, signal, sys; from maskwalk.cli.main import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000));"
        f"sys.argv = ['maskwalk', 'bench', {str(file)!r}, '--out', {str(out)!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "intact" in done.stderr and "Traceback" not in done.stderr
    kept = len(load_records(out))
    assert kept >= 1
    assert (out / "records.jsonl").read_bytes().endswith(b"\n")
    assert len(list(run_of(Experiment.load(file), out))) == CELLS - kept


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    with (
        RecordFile(tmp_path / "r.jsonl"),
        pytest.raises(MaskwalkError, match="Another process"),
        RecordFile(tmp_path / "r.jsonl"),
    ):
        pass


def test_records_that_are_not_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match="no records"):
        load_records(tmp_path)
    (tmp_path / "records.jsonl").write_text('{"key": 1}\n')
    with pytest.raises(MaskwalkError, match="Line 1"):
        load_records(tmp_path)


def test_a_cells_key_follows_the_models_weights(tmp_path: Path) -> None:
    """The same directory with other weights is another cell."""
    config = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)
    place = {"graph": "st_er(nodes=5, p=0.2)", "walk": "lazy()", "length": 4, "graph_seed": 0}
    keys = []
    for seed in (0, 1, 0):
        about = {"world": walk_world(**place), **place}
        save_pretrained(Pretrained(config, layout(config).initial([seed])[0], about), tmp_path)
        cell = Cell.checked(task="unconditional", sampler="random", denoiser=str(tmp_path))
        keys.append(cell.key)
    assert keys[0] == keys[2] != keys[1]


def test_a_record_of_the_first_schema_names_its_world() -> None:
    """Graph, walk, length and graph seed, each in its place."""
    old = {"schema": 1, "key": "k", "metrics": {}, "preset": "exact", "ties": "uniform"}
    place = {"graph": "st_er(nodes=5, p=0.2)", "walk": "lazy()", "length": 8, "graph_seed": 3}
    record = upgrade(old | place | {"draw": {"precision": "float64"}})
    assert record["world"] == "walk(graph=st_er(nodes=5, p=0.2), law=lazy(), length=8, seed=3)"
    assert (record["mode"], record["schema"]) == ("exact", 2)


def test_the_batch_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell.checked(
        graph="st_er(nodes=20, p=0.1)",
        graph_seed=0,
        walk="lazy()",
        length=8,
        task="endpoints",
        sampler="random(block=2)",
        count=30,
        per_prompt=2,
    )
    whole = run_cell(cell)[0]
    monkeypatch.setattr("maskwalk.bench.cell.BATCH", 7)
    assert run_cell(cell)[0]["metrics"] == whole["metrics"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("bisection", "bisecton", "Did you mean 'bisection'"),
        ("count = 16", "cuont = 16", "Did you mean 'count'"),
        ("title = ", "titel = ", "Did you mean 'title'"),
        ("length = 8", "length = 1", "from 2"),
        ("count = 16", "count = 0", "count in .* must be a whole number at least 1"),
        ('walk = "lazy()"', "", "no walk"),
        ('"exact", ', '"exat", ', "exact"),
        ("[[graphs]]", "[[graph", "not a TOML file"),
    ],
)
def test_mistakes_in_the_file_are_found_before_anything_runs(
    file: Path, old: str, new: str, says: str
) -> None:
    file.write_text(SMALL.replace(old, new))
    with pytest.raises(MaskwalkError, match=says):
        Experiment.load(file)


def test_modes_axes_and_columns_reach_the_records(tmp_path: Path) -> None:
    path = tmp_path / "modes.toml"
    path.write_text(
        """
        count = 4
        modes = ["oracle", "exact"]
        metrics = ["coherence"]
        samplers = ["bisection(order=2)", "left_to_right"]
        [[graphs]]
        zoo = "st_er_p0"
        column = "st_er_p0"
        axis = { name = "memory order", parameter = "order", marks = [4, 5] }
        """
    )
    experiment = Experiment.load(path)
    made = [(c.denoiser, c.mode) for c in experiment.cells]
    assert made == [("oracle", "exact")] * 2 + [("zoo:st_er_p0", "exact")] * 2
    records = list(run_of(experiment, tmp_path / "out"))
    axis = {"name": "memory order", "marks": [4, 5], "value": 2}
    assert [r.get("axis") for r in records] == [axis, None] * 2
    assert {r["column"] for r in records} == {"st_er_p0"}
    path.write_text(path.read_text() + '[[graphs]]\nzoo = "st_er_deg7"\nquick = false\n')
    assert (
        len(Experiment.load(path).cells) == 8
        and len(Experiment.load(path).reduced(2, 1).cells) == 4
    )
    small = experiment.reduced(2, 1)
    assert all(c.count == 2 for c in small.cells)
    assert {c.key for c in small.cells}.isdisjoint(c.key for c in experiment.cells)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('modes = ["exactly"]', "exactly"),
        ('axis = "b"', "table with a name"),
        ('axis = { name = "b", at = 1 }', "at"),
    ],
)
def test_bad_modes_and_axes_are_refused(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(f'samplers = ["left_to_right"]\n{line}\n[[graphs]]\nzoo = "st_er_p0"\n')
    with pytest.raises(MaskwalkError, match=said):
        Experiment.load(path)


def test_coherence_by_separation_adds_up() -> None:
    cell = Cell.checked(
        graph="community_chain(communities=4, nodes=5, p=0.3)",
        walk="lazy(stay=0.125)",
        length=8,
        task="bottleneck",
        sampler="random(block=2)",
        count=40,
        per_prompt=3,
        metrics=("coherence", "coherence_by_separation"),
    )
    metrics = run_cell(cell)[0]["metrics"]
    parts = metrics["coherence_by_separation"]["by"]
    assert [part["at"] for part in parts] == [1, 2, 3]
    assert sum(part["n"] for part in parts) == 120
    total = sum(part["n"] * part["value"] for part in parts) / 120
    assert total == pytest.approx(metrics["coherence"]["value"])
    assert len({part["value"] for part in parts}) > 1
    none = replace(cell, task="endpoints(start=None, end=None)")
    assert run_cell(none)[0]["metrics"]["coherence_by_separation"] is None
