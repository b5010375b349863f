"""The lowest scores of each row, equals by a key: with torch, or with numpy where that is cheaper.

Both give the same positions. A position whose score is not finite is never picked.
"""

from math import isfinite
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.kernels.small import small

INF = float("inf")


def pick(
    scores: Float64[Tensor, "batch length"],
    keys: Float64[Tensor, "batch length"] | None,
    count: int | Int[Tensor, " batch"],
) -> Bool[Tensor, "batch length"]:
    """The `count` lowest finite scores of each row; of equals those of the lowest key, or without
    keys the first."""
    numbers = small(scores)
    if isinstance(numbers, np.ndarray):
        many: Any = count.numpy() if isinstance(count, Tensor) else count
        many = many if isinstance(many, int) or len(many) > 1 else int(many[0])
        few = None if keys is None else keys.numpy()
        return torch.from_numpy(_pick_few(numbers, few, many))
    allowed = scores.isfinite()
    if keys is None:
        keys = torch.arange(scores.shape[1], dtype=torch.float64, device=scores.device)
        keys = keys.expand(scores.shape)
    if isinstance(count, int) and count == 1:
        tied = allowed & (scores == scores.amin(1, keepdim=True))
        first = keys.masked_fill(~tied, INF).argmin(1, keepdim=True)
        return torch.zeros_like(allowed).scatter(1, first, True) & allowed
    limit = count[:, None] if isinstance(count, Tensor) else count
    return (ranks(scores, keys) < limit) & allowed


def _pick_few(scores: np.ndarray, keys: np.ndarray | None, count: Any) -> np.ndarray:
    """The same on numpy arrays."""
    chosen: np.ndarray = np.zeros(scores.shape, dtype=bool)
    one = count == 1 if isinstance(count, int) else (count == 1).all()
    if one and keys is None and len(scores) == 1:  # numbers cost less than arrays of one
        place = scores.argmin()
        chosen[0, place] = isfinite(scores.item(place))
        return chosen
    allowed, row = np.isfinite(scores), np.arange(len(scores))
    if one:
        first = scores.argmin(1) if keys is None else _first_of_least(scores, keys, allowed)
        chosen[row, first] = allowed[row, first]
        return chosen
    limit = count[:, None] if isinstance(count, np.ndarray) else count
    order = scores.argsort(1, kind="stable") if keys is None else np.lexsort((keys, scores))
    chosen[row[:, None], order] = np.arange(scores.shape[1]) < limit
    chosen &= allowed
    return chosen


def _first_of_least(scores: np.ndarray, keys: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Where each row is least, of equals by the lowest key."""
    tied = allowed & (scores == scores.min(1, keepdims=True))
    first: np.ndarray = np.where(tied, keys, INF).argmin(1)
    return first


def ranks(
    scores: Float64[Tensor, "batch length"], keys: Float64[Tensor, "batch length"]
) -> Int[Tensor, "batch length"]:
    """The place of each position by score, equals by key."""
    by_key = keys.argsort(1)
    order = by_key.gather(1, scores.gather(1, by_key).argsort(dim=1, stable=True))
    places = torch.arange(scores.shape[1], device=scores.device).expand(scores.shape)
    return torch.empty_like(order).scatter(1, order, places)
