"""Decoding among processes (torchrun, gloo, two on a CPU): the tokens of one, whoever decodes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maskwalk.decoding.processes import Group
from maskwalk.training.distributed import free_port

# One process of the group: a network's cell with odd rows, an experiment, a trace of every row, a
# failure of one row's process; the first process writes what it got.
PROGRAM = """
import json, sys
from dataclasses import replace
from pathlib import Path
import torch
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.experiment import load_experiment
from maskwalk.bench.run import Run, here
from maskwalk.bench.shared import follow, leading
from maskwalk.decoding.shared import decode_rows
from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language.books import load_books
from maskwalk.decoding.processes import rows_shared
from maskwalk.worlds.world import build_world

class Fails:
    def __init__(self, inner):
        self.inner, self.score_grid = inner, inner.score_grid
        self.vocab_size, self.mask_id = inner.vocab_size, inner.mask_id
    def __call__(self, tokens, at=None):
        if (tokens[:, 0] == 2).any():
            raise ValueError("row with a 2")
        return self.inner(tokens, at)

cell = Cell.checked(graph="st_er(nodes=20, p=0.0)", walk="lazy(stay=0.25)", length=8,
    sampler="random(block=4)", count=7, per_prompt=3, task="unconditional")
with rows_shared("cpu") as group:
    record, decoded = run_cell(cell, group.device)
    traced = run_cell(cell, group.device, trace=True)[1].trace
    few = run_cell(replace(cell, count=1, per_prompt=1), group.device)[1]
    made = generate(load_books("zoo:books_mdm"), "random(block=4)", length=12, count=5)
    jobs = load_experiment(Path(sys.argv[2]), False).jobs(Path(sys.argv[1]))
    if group.first:
        engine = leading(group, "cpu") if group.world > 1 else here()
        list(Run(jobs, Path(sys.argv[1]) / "records.jsonl", engine))
    else:
        follow(group, "cpu")
    oracle = build_world(cell.world).oracle()
    start = torch.full((4, 8), oracle.mask_id)
    start[3, 0] = 2  # in the last process's share
    try:
        decode_rows("random", Fails(oracle), start, seed=0)
        failed = ""
    except Exception as problem:
        failed = f"{type(problem).__name__}: {problem}"
    told = group.tell("ä job" if group.first else "")
about = {
    "record": {k: v for k, v in record.items() if k != "seconds"},
    "calls": decoded.calls.tolist(), "tokens": decoded.tokens.tolist(),
    "rounds": decoded.rounds.tolist(), "traced": len(traced.ids),
    "few": few.tokens.tolist(), "texts": made.texts, "text_calls": made.calls.tolist(),
    "failed": failed, "told": told, "share": group.share(21).stop - group.share(21).start,
}
open(sys.argv[1] + f"/{group.rank}.json", "w").write(json.dumps(about))
"""

EXPERIMENT = """
name = "two cells"
length = 6
count = 5
samplers = ["random(block=2)", "bisection(order=1)"]

[[graphs]]
title = "Small"
graph = "st_er(nodes=8, p=0.4)"
walk = "lazy(stay=0.25)"
tasks = ["endpoints"]
"""


TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port")


def begin(folder: Path, experiment: Path, *how: str) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, *how, str(program), str(folder), str(experiment)]
    return subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, list[dict]]:
    folder = tmp_path_factory.mktemp("shared")
    experiment = folder / "two_cells.toml"
    experiment.write_text(EXPERIMENT)
    processes = [
        begin(folder / "two", experiment, *TORCHRUN, str(free_port())),
        begin(folder / "one", experiment),
    ]
    try:
        assert [process.wait(timeout=240) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.terminate()  # torchrun ends the processes it started
            process.wait()
    results = [folder / "one" / "0.json", *(folder / "two" / f"{rank}.json" for rank in range(2))]
    one, *both = (json.loads(path.read_text()) for path in results)
    for name, result in (("one", one), ("two", both[0])):
        lines = (folder / name / "records.jsonl").read_text().splitlines()
        result["records"] = [json.loads(line) | {"seconds": 0} for line in lines]
    return one, both


def test_two_processes_decode_what_one_does(runs: tuple[dict, list[dict]]) -> None:
    one, two = runs
    assert [each["share"] for each in two] == [11, 10] and one["share"] == 21
    for name in ("tokens", "calls", "rounds", "few", "texts", "text_calls", "traced"):
        assert two[0][name] == two[1][name] == one[name], name
    assert two[0]["record"] == one["record"]  # also the count of impossible evidence
    assert one["record"]["impossible"] > 0


def test_one_process_leads_an_experiment_and_the_other_follows(
    runs: tuple[dict, list[dict]],
) -> None:
    one, two = runs
    assert len(one["records"]) == 2 and two[0]["records"] == one["records"]


def test_one_process_that_fails_ends_the_work_of_all(runs: tuple[dict, list[dict]]) -> None:
    one, two = runs
    assert one["failed"] == two[1]["failed"] == "ValueError: row with a 2"
    assert "1 of 2 processes failed" in two[0]["failed"]
    assert [each["told"] for each in two] == ["ä job", "ä job"]


@pytest.mark.parametrize(("count", "world"), [(0, 3), (2, 3), (7, 3), (9, 3), (5, 1)])
def test_shares_cover_every_row_once(
    count: int, world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, rows = Group("cpu"), []
    group.world = world
    for rank in range(world):
        group.rank = rank
        share = list(range(count))[group.share(count)]
        assert count // world <= len(share) <= -(-count // world)
        rows += share
    assert rows == list(range(count))
