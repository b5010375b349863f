"""Random distributions, and draws from weights: what several worlds are made of."""

import numpy as np
from jaxtyping import Float64, Int64

from maskwalk.streams import Purpose, block_uniforms


def sparse_rows(
    rows: int, columns: int, each: int, seed: int, stream: int, chained: bool = False
) -> Float64[np.ndarray, "rows columns"]:
    """Random distributions with `each` positive entries; `chained`: row i has one at i + 1."""
    u = block_uniforms(seed, Purpose.GRAPH, 0, rows, 2 * columns, stream)
    rank = u[:, :columns].copy()
    if chained:
        rank[np.arange(rows), (np.arange(rows) + 1) % columns] = -1.0
    kept = rank.argsort(1).argsort(1) < each
    weight = np.where(kept, -np.log1p(-u[:, columns:]) + 0.1, 0.0)
    return np.asarray(weight / weight.sum(1, keepdims=True))


def pick(
    cumulative: Float64[np.ndarray, "count options"], u: Float64[np.ndarray, " count"]
) -> Int64[np.ndarray, " count"]:
    """In every row the first option whose share of the total exceeds u."""
    return np.asarray((cumulative > u[:, None] * cumulative[:, -1:]).argmax(1))
