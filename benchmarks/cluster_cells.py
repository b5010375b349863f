"""What `--engine ray` costs besides the cells: many tiny cells through one driver.

    python benchmarks/cluster_cells.py [--cells 100000] [--measured 5000] [--workers 2]

The cells are walks of four tokens, one sequence each, so that nearly all of the time is the
engine's: handing out jobs, getting results, writing each record through to the disk. A cluster of
one node is started on this machine. Prints a row: cells, how many of them were run, workers,
seconds by the clock, the driver's processor milliseconds a cell (all its threads, Ray's included),
the most jobs that were on their way at once, the driver's memory before and after, bytes a record;
and what the cells took.
"""

import argparse
import json
import resource
import shutil
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from maskwalk.bench.cell import Cell
from maskwalk.bench.cluster.connection import Cluster
from maskwalk.bench.cluster.crew import Crew
from maskwalk.bench.cluster.engine import OnRay
from maskwalk.bench.plan import Job
from maskwalk.bench.run import Run

WORLD = "walk(graph=st_er(nodes=5, p=0.2), law=lazy(), length=4)"
COLUMNS = (
    "cells | measured | workers | seconds | driver ms | on their way | GB before | GB after | bytes"
)


def jobs(count: int) -> list[Job]:
    """Cells that differ in their seed."""
    cell = Cell.checked(world=WORLD, task="unconditional", sampler="bisection", count=1)
    cell = replace(cell, metrics=())
    cells = (replace(cell, seed=seed) for seed in range(count))
    return [Job(c.key, "cell", {"cell": asdict(c), "traces": 0}, {"cell": c.seed}) for c in cells]


def memory() -> float:
    """The most this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    words = argparse.ArgumentParser(description="The engine's own cost.")
    words.add_argument("--cells", type=int, default=100_000)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--measured", type=int, help="stop after so many of them")
    wanted = words.parse_args()
    measured = min(wanted.cells, wanted.measured or wanted.cells)
    folder = Path(tempfile.mkdtemp())
    engine, most = OnRay(Cluster(workers=wanted.workers)), 0
    engine.connect()
    work, hand_out = jobs(wanted.cells), Crew._hand_out
    before = memory()

    def watched(crew: Crew) -> None:
        nonlocal most
        hand_out(crew)
        most = max(most, len(crew.busy))

    Crew._hand_out = watched  # type: ignore[method-assign]
    began = spent = inside = 0.0
    for number, record in enumerate(Run(work, folder / "records.jsonl", engine)):
        inside += record["seconds"]
        if number == 0:  # the workers are there
            began, spent = time.perf_counter(), time.process_time()
        if number + 1 == measured:
            break
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    size = (folder / "records.jsonl").stat().st_size / measured
    keys = {json.loads(line)["key"] for line in (folder / "records.jsonl").open()}
    assert len(keys) == measured
    shutil.rmtree(folder)
    print(f"| {COLUMNS} |\n|{'---:|' * 9}")
    print(
        f"| {wanted.cells:,} | {measured:,} | {wanted.workers} | {seconds:.0f} | "
        f"{1000 * spent / measured:.2f} | {most} | {before:.2f} | {memory():.2f} | {size:.0f} |"
    )
    print(f"The cells themselves: {1000 * inside / measured:.2f} ms each.")


if __name__ == "__main__":
    main()
