"""Estimates with their errors, and many comparisons with one chance of a false alarm."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

Values = Float64[np.ndarray, " tests"]


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error, from `n` sequences; NaN is written as null."""

    value: float
    se: float
    n: int
    extra: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a record."""
        shown = {"value": self.value, "se": self.se, "n": self.n, **self.extra}
        return {k: None if v != v else v for k, v in shown.items()}


def mean(values: Tensor, prompts: Tensor, groups: int = 4) -> Estimate:
    """The mean with a standard error clustered by prompt and the paper's four-group spread."""
    x = values.to(torch.float64).cpu().numpy()
    if len(x) == 0:
        return Estimate(float("nan"), float("nan"), 0, {})
    names, inverse, sizes = np.unique(
        prompts.cpu().numpy(), return_inverse=True, return_counts=True
    )
    # Every sequence weighs the same, so a cluster's influence is its summed deviation.
    deviation = np.bincount(inverse, x - x.mean(), minlength=len(names))
    clusters = len(names)
    scale = clusters / (clusters - 1) if clusters > 1 else float("nan")
    se = float(np.sqrt(scale * (deviation**2).sum()) / len(x))
    spread = float("nan")
    if clusters >= groups:
        means = np.bincount(inverse, x) / sizes
        spread = float(np.std([part.mean() for part in np.array_split(means, groups)]))
    return Estimate(float(x.mean()), se, len(x), {"group_sd": spread})


def holm(p: Values, comparisons: int | None = None) -> Values:
    """Corrected p-values, in the order given, by Holm's step-down (1979).

    The k-th smallest of n is multiplied by n - k + 1, and never becomes smaller than one before it.
    Whatever the dependence between the tests, the chance of even one false alarm is then at most
    the level.

    Where only the smallest are at hand, `comparisons` says how many were made in all.
    """
    order = p.argsort(kind="stable")
    steps = np.minimum(p[order] * ((comparisons or len(p)) - np.arange(len(p))), 1.0)
    out = np.empty(len(p))
    out[order] = np.maximum.accumulate(steps)
    return out
