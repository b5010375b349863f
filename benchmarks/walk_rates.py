"""Tokens of walks per second by the size of the graph, beside an earlier version of the source.

    git worktree add ../earlier 9df556b
    PYTHONPATH=src python benchmarks/walk_rates.py ../earlier/src

`st_er` graphs of average degree about 9, `lazy(stay=0.125)`, 2^21 tokens of walks of 24. The
versions and the sizes take turns, each in a process of its own that builds the graph once; the best
of several times in several rounds counts, of the processor's time and of the clock's, on one thread
and on one for each core. On cores that other work shares only the processor's says something. What
bounds a million nodes is printed last: one look at a random slot of the table, by itself.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

INSIDE = """
import sys, time, torch
try:
    from maskwalk.worlds.walks.graphs import GRAPHS
    from maskwalk.worlds.walks.laws import WALKS
except ModuleNotFoundError:  # where they were at 9df556b
    from maskwalk.graphs import GRAPHS
    from maskwalk.walks import WALKS
nodes, threads, times = map(int, sys.argv[1:])
torch.set_num_threads(threads)
graph = GRAPHS.build(f"st_er(nodes={nodes}, p={7 / nodes!r})", seed=0)
law = WALKS.build("lazy(stay=0.125)", graph=graph, length=24)
count = 2**21 // 24
law.sample(count, 0)
spent, took = float("inf"), float("inf")
for _ in range(times):
    before, begin = time.process_time(), time.perf_counter()
    law.sample(count, 0)
    spent = min(spent, time.process_time() - before)
    took = min(took, time.perf_counter() - begin)
print(count * 24 / spent / 1e6, count * 24 / took / 1e6)
"""
LOOK = """
import time, numpy as np
slots = np.ones((11_000_000, 4), dtype=np.int64)
places = np.random.default_rng(0).integers(0, len(slots), (64, 1 << 14))
best = float("inf")
for _ in range(9):
    begin = time.process_time()
    for some in places:
        slots.take(some, 0, mode="clip")
    best = min(best, time.process_time() - begin)
print(best / places.size * 1e9)
"""  # nanoseconds


def told(code: str, source: Path, *words: object) -> list[float]:
    """The numbers that a process with this package prints."""
    line = [sys.executable, "-c", code, *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(line, env=environment, check=True, capture_output=True)
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("earlier", type=Path)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 20_000, 50_000, 1_000_000])
    parser.add_argument("--earlier-up-to", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    sources = {"earlier": given.earlier.resolve(), "now": Path(__file__).parent.parent / "src"}
    best: dict[tuple[int, str, int], list[float]] = {}
    look = float("inf")
    for _ in range(given.rounds):
        for nodes in given.nodes:
            for name, source in sources.items():
                if name == "now" or nodes <= given.earlier_up_to:
                    for threads in (1, os.cpu_count() or 1):
                        rates = told(INSIDE, source, nodes, threads, given.times)
                        so_far = best.get((nodes, name, threads), rates)
                        best[nodes, name, threads] = [max(x) for x in zip(so_far, rates)]
        look = min(look, *told(LOOK, sources["now"]))
    for (nodes, name, threads), (spent, took) in best.items():
        words = f"{spent:.1f} a second of the processor, {took:.1f} by the clock"
        print(f"{nodes:>9,} nodes, {name}, {threads} threads: million tokens {words}")
    print(f"one look at a random slot: {look:.1f} ns")


if __name__ == "__main__":
    main()
