"""A column of the paper's tables among several graphs of its family.

The paper prints one graph. Whether ours differ from it by more than graphs of one family differ
from each other is asked in two ways:

    cell by cell       the printed value against the 95 % interval for one more graph: the mean of
                       the graphs ± t · s · √(1 + 1/n), s the deviation over them
    the whole column   its RMSE to the mean of the graphs, beside that of every graph to the mean
                       of the others, over the cells printed above .05

Models of the same graph (another training run) are averaged first; how far two of them are apart
is `runs`. Of several families (another start law, say) the one with most graphs counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.stats import t

from maskwalk.bench.records import Record
from maskwalk.errors import MaskwalkError
from maskwalk.paper.compare import ABOVE, Pair, pairs
from maskwalk.paper.tables import tables
from maskwalk.worlds.walks.world import walk_parts

FEWEST = 3  # graphs
Column = Float64[np.ndarray, " cells"]
Columns = Float64[np.ndarray, "graphs cells"]


def spread(records: Iterable[Record], column: str, mode: str) -> list[dict[str, Any]]:
    """A row for every table that has the column: how the printed numbers lie among the graphs."""
    known = sorted({name for table in tables().values() for row in table.values() for name in row})
    if column not in known:
        raise MaskwalkError(f"The paper has no column {column!r}; it has {', '.join(known)}.")
    some = [p for p in pairs(records) if p.column == column and p.mode == mode]
    by_table: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in some:
        if pair.published > ABOVE:
            by_table[pair.table, pair.task].append(pair)
    rows = [_row(*key, cells) for key, cells in by_table.items()]
    found = [row for row in rows if row is not None]
    if not found:
        raise MaskwalkError(
            f"These records have fewer than {FEWEST} graphs of {column} with {mode} draws; "
            "name more records with --with."
        )
    return found


def _row(table: str, task: str, cells: list[Pair]) -> dict[str, Any] | None:
    samplers = sorted({p.sampler for p in cells})
    families = Counter(_family(world) for world in {p.world for p in cells})
    largest = families.most_common(1)[0][0]
    cells = [p for p in cells if _family(p.world) == largest]
    models = _models(cells, samplers)
    graphs = np.array([np.mean(runs, 0) for runs in models.values()])
    if len(graphs) < FEWEST:
        return None
    printed_by = {p.sampler: p.published for p in cells}
    printed = np.array([printed_by[name] for name in samplers])
    half = _half(graphs)
    mean = graphs.mean(0)
    return {
        "table": table,
        "task": task,
        "graphs": len(graphs),
        "cells": len(samplers),
        "inside": int((np.abs(printed - mean) <= half).sum()),
        "rmse": _rmse(printed, mean),
        "others": [_rmse(g, np.delete(graphs, i, 0).mean(0)) for i, g in enumerate(graphs)],
        "nearest": min(_rmse(printed, g) for g in graphs),
        "runs": [_rmse(a, b) for runs in models.values() for a, b in combinations(runs, 2)],
        "outside": [
            {"sampler": name, "printed": float(p), "mean": float(m), "half": float(h)}
            for name, p, m, h in zip(samplers, printed, mean, half)
            if abs(p - m) > h
        ],
    }


def _family(world: str) -> str:
    """The world without the seed of its graph."""
    parts = walk_parts(world) or {"world": world}
    return str({key: value for key, value in parts.items() if key != "graph_seed"})


def _models(cells: list[Pair], samplers: list[str]) -> dict[str, list[Column]]:
    """The coherences of every model that has all cells, by its graph."""
    by_model: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for pair in cells:
        by_model[pair.world, pair.graph][pair.sampler] = pair.ours
    result: dict[str, list[Column]] = defaultdict(list)
    for (world, _), values in by_model.items():
        if len(values) == len(samplers):
            result[world].append(np.array([values[name] for name in samplers]))
    return result


def _half(graphs: Columns) -> Column:
    """Half of the 95 % interval for one more graph."""
    n = len(graphs)
    factor = float(t.ppf(0.975, n - 1)) * float(np.sqrt(1 + 1 / n))
    half: Column = factor * graphs.std(0, ddof=1)
    return half


def _rmse(one: Column, other: Column) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))
