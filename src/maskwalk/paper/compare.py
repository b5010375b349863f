"""Records against the paper's tables: cell by cell, column by column, table by table.

A difference is stated in combined standard errors: ours, and the published one, which is the
printed spread s of four group means (numpy's default) turned into the error of their mean, s/√3.
Neither is taken to be smaller than the binomial error of as many independent sequences.

The root mean square is given over all cells and over those published above .05, since half of the
tables is nearly zero and forgives anything. Rank correlation is Spearman's, ties by average ranks;
`expected` beside it is what the paper's own samplers would get, on average, against a second
measurement of the same size with the same truth: where all samplers are near 1.000, not much. A
mean, so a comparison may lie above it.

Nothing here says why a cell differs: that takes other records (experiments/suspects.toml).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, spearmanr

from maskwalk.bench.records import Record
from maskwalk.errors import MaskwalkError
from maskwalk.paper.tables import error, printed, published_cell, tables
from maskwalk.stats import combined

ABOVE = 0.05
FAR = 3.0  # combined standard errors
RUNS = 400  # of the simulation of `expected`


@dataclass(frozen=True)
class Pair:
    """One published cell beside ours."""

    mode: str
    table: str
    column: str
    graph: str
    task: str
    sampler: str
    ours: float
    se: float
    published: float
    published_se: float
    world: str = ""

    @property
    def difference(self) -> float:
        """Ours minus published."""
        return self.ours - self.published

    @property
    def sigmas(self) -> float:
        """The difference in combined standard errors."""
        return self.difference / combined(self.se, self.published_se)


def mode_of(record: Record) -> str:
    """as_published, exact or oracle: how the record was made."""
    return "oracle" if record["denoiser"] == "oracle" else record["mode"]


def pairs(records: Iterable[Record]) -> list[Pair]:
    """Every record that has a published cell, beside it."""
    by_cell = {}
    for record in records:
        where = published_cell(record)
        coherence = record["metrics"].get("coherence")
        if where is None or not coherence:
            continue
        table, name, column = where
        mode, published = mode_of(record), printed(*where)
        by_cell[mode, record["world"], record["title"], record["task"], name] = Pair(
            mode,
            table,
            column,
            str(record["title"]),
            record["task"],
            record["sampler"],
            coherence["value"],
            error(coherence["value"], coherence["se"], coherence["n"]),
            published["value"],
            published["se"],
            record["world"],
        )
    return list(by_cell.values())


@dataclass(frozen=True)
class Fit:
    """How near some cells are to the published ones; `_above` over those published above .05."""

    cells: int
    cells_above: int
    rmse: float | None
    rmse_above: float | None
    bias_above: float | None
    rank: float | None = None
    rank_above: float | None = None
    expected_above: float | None = None


def fit(some: list[Pair], ranked: bool = False) -> Fit:
    """The fit of some cells; rank correlations only where they are one column."""
    above = [pair for pair in some if pair.published > ABOVE]
    ranks: dict[str, float | None] = {}
    if ranked:
        ranks = {
            "rank": _rank(some),
            "rank_above": _rank(above),
            "expected_above": _expected(above),
        }
    bias = float(np.mean([p.difference for p in above])) if above else None
    return Fit(len(some), len(above), _rmse(some), _rmse(above), bias, **ranks)


def _rmse(some: list[Pair]) -> float | None:
    return float(np.sqrt(np.mean([p.difference**2 for p in some]))) if some else None


def _rank(some: list[Pair]) -> float | None:
    ours, theirs = [p.ours for p in some], [p.published for p in some]
    if len(some) < 3 or len(set(ours)) == 1 or len(set(theirs)) == 1:
        return None
    return float(spearmanr(ours, theirs).statistic)


def _expected(some: list[Pair]) -> float | None:
    """The mean rank correlation of two measurements of the published values, each with its error.

    A simulation with a fixed seed: it is a yardstick, not a result.
    """
    if len(some) < 3:
        return None
    noise = np.random.default_rng(0)
    truth = np.array([p.published for p in some])
    error = np.array([p.published_se for p in some])
    both = truth + error * noise.standard_normal((2, RUNS, len(some)))
    once, twice = rankdata(both, axis=2) - (len(some) + 1) / 2
    return float(np.mean((once * twice).sum(1) / np.sqrt((once**2).sum(1) * (twice**2).sum(1))))


def compare(records: list[Record]) -> dict[str, Any]:
    """The whole comparison; at the top level that of mode as_published, the paper's own."""
    all_pairs = pairs(records)
    if not all_pairs:
        raise MaskwalkError(
            "None of these records belongs to a cell of the paper's tables. `maskwalk reproduce "
            "paper` makes them."
        )
    modes = {
        mode: _mode([p for p in all_pairs if p.mode == mode]) for mode in _kinds(all_pairs, "mode")
    }
    first = "as_published" if "as_published" in modes else next(iter(modes))
    top = {key: value for key, value in modes[first].items() if key != "columns"}
    cells = [asdict(p) | {"difference": p.difference, "sigmas": p.sigmas} for p in all_pairs]
    cells.sort(key=lambda cell: -abs(cell["sigmas"]))
    return {
        "mode": first,
        **top,
        "published_cells": sum(len(c) for t in tables().values() for c in t.values()),
        "modes": modes,
        "far": [c for c in cells if c["mode"] == first and abs(c["sigmas"]) > FAR],
        "cells": cells,
    }


def _mode(some: list[Pair]) -> dict[str, Any]:
    columns = []
    order = list(tables())
    keys = dict.fromkeys((p.table, p.column, p.graph, p.task) for p in some)
    for key in sorted(keys, key=lambda key: order.index(key[0])):
        here = [p for p in some if (p.table, p.column, p.graph, p.task) == key]
        about = dict(zip(("table", "column", "graph", "task"), key))
        columns.append(about | asdict(fit(here, ranked=True)))
    by_table = {t: asdict(fit([p for p in some if p.table == t])) for t in _kinds(some, "table")}
    return asdict(fit(some)) | {"tables": by_table, "columns": columns}


def _kinds(some: list[Pair], field: str) -> list[str]:
    return list(dict.fromkeys(str(getattr(pair, field)) for pair in some))
