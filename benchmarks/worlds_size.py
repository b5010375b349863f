"""What a larger world takes: seconds and memory to build, to sample, to ask the oracle, to measure.

    python benchmarks/worlds_size.py                               (ten minutes on two cores)
    python benchmarks/worlds_size.py --nodes 1000 --lengths 24     (a part of it)

ST-ER graphs of average degree about 9 (`st_er(nodes=N, p=7/N)`), lazy walks. Every row is a process
of its own, so that its peak memory is its own; seconds are those of the processor, so that a busy
machine does not count. The oracle is asked for the place in the middle between two revealed ends,
the widest gap there is; `bisection` is one whole sequence decoded from nothing. Growth is the slope
of log seconds over log nodes, or log length, between the two ends of each series.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

NODES, LENGTHS = (1_000, 10_000, 100_000, 1_000_000), (24, 256, 1536)
STAGES = ("graph", "law", "sample", "oracle", "bisection", "metrics")
MEBIBYTES = 2**20 if sys.platform == "darwin" else 2**10  # what ru_maxrss counts in
TOKENS = 2**20  # sampled
MEASURED = 128  # walks whose metrics are taken
PATIENCE = 4e9  # steps × edges of a sequence that is decoded; beyond, only one place is asked


def measure(nodes: int, length: int) -> dict[str, Any]:
    """Seconds of every stage, and peak memory after it, in this process."""
    import torch

    import maskwalk.worlds.table  # noqa: F401  (the metrics are not to be charged for imports)
    from maskwalk.decoding.decode import decode
    from maskwalk.streams import Streams
    from maskwalk.worlds.metrics import Sample
    from maskwalk.worlds.metrics import measure as measured
    from maskwalk.worlds.walks.graphs import GRAPHS
    from maskwalk.worlds.walks.laws import WALKS
    from maskwalk.worlds.walks.oracles import oracle_for

    row: dict[str, Any] = {"nodes": nodes, "length": length, "before": _peak()}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        made = work()
        row[stage], row[f"{stage}_peak"] = time.process_time() - start, _peak()
        return made

    graph = timed("graph", lambda: GRAPHS.build(f"st_er(nodes={nodes}, p={7 / nodes!r})", seed=0))
    law = timed("law", lambda: WALKS.build("lazy(stay=0.125)", graph=graph, length=length))
    timed("sample", lambda: law.sample(TOKENS // length, 0))
    oracle = oracle_for(law)
    row["kind"], row["edges"] = type(oracle).__name__, len(graph.sources) // 2
    walks = law.sample(MEASURED, 0)
    tokens = torch.full((1, length), nodes)
    tokens[0, 0], tokens[0, -1] = walks[0, 0], walks[0, -1]
    place = torch.zeros_like(tokens, dtype=torch.bool)
    place[0, length // 2] = True
    oracle(tokens, torch.zeros_like(place))  # tables, if any, and kernels
    timed("oracle", lambda: oracle(tokens, place))
    if 1.0 * length * len(graph.sources) <= PATIENCE:
        blank = torch.full((1, length), nodes)
        timed("bisection", lambda: decode("bisection", oracle, blank, streams=Streams(0, 1)))
    ids = torch.arange(MEASURED)
    sample = Sample(law, walks, None, ids, torch.full((MEASURED,), length))
    names = ("coherence", "transition_validity", "tv1")
    timed("metrics", lambda: measured(sample, names))
    return row


def _peak() -> float:
    """The largest memory this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTES


def _in_process(nodes: int, length: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", str(nodes), str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def growth(rows: list[dict[str, Any]], stage: str, along: str) -> float | None:
    """The exponent between the first and the last row that have the stage."""
    some = sorted((row for row in rows if row.get(stage)), key=lambda row: row[along])
    if len(some) < 2 or some[0][along] == some[-1][along]:
        return None
    ratio = some[-1][stage] / max(some[0][stage], 1e-6)
    return math.log(ratio) / math.log(some[-1][along] / some[0][along])


def show(rows: list[dict[str, Any]]) -> None:
    """The table, and how each stage grows."""
    table = Table(title=f"CPU seconds; {TOKENS:,} tokens sampled, {MEASURED} walks measured")
    heads = ("nodes", "edges", "length", "oracle", *STAGES, "peak GB")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        seconds = [f"{row[stage]:.2f}" if stage in row else "–" for stage in STAGES]
        about = (f"{row['nodes']:,}", f"{row['edges']:,}", f"{row['length']:,}")
        peak = max(value for key, value in row.items() if key.endswith("_peak"))
        table.add_row(*about, row["kind"].removesuffix("Oracle"), *seconds, f"{peak / 1024:.2f}")
    console = Console(width=120)
    console.print(table)
    sparse = [row for row in rows if row["kind"] == "SparseOracle"]
    for along, fixed in (("nodes", "length"), ("length", "nodes")):
        for value in sorted({row[fixed] for row in sparse}):
            mine = [row for row in sparse if row[fixed] == value]
            found = {stage: growth(mine, stage, along) for stage in STAGES}
            words = [f"{stage} {power:.2f}" for stage, power in found.items() if power is not None]
            if words:
                console.print(f"growth with {along} at {fixed} {value:,}: {', '.join(words)}")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="*", default=NODES)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--one", type=int, nargs=2)
    parser.add_argument("--json")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    rows = []
    for nodes in given.nodes:
        for length in given.lengths:
            rows.append(_in_process(nodes, length))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows)
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
