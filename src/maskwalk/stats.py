"""Estimates and their errors, intervals, many comparisons, and fronts: each in one place.

**±** is half of a 95 % interval everywhere a number is printed or drawn: `half_width(se)`, 1.96
standard errors. Records keep standard errors.

**A share of exactly 0 or 1** has a plug-in error of 0, which would make every difference certain.
Its standard error is that of Agresti and Coull's shrunk proportion instead (two successes and two
failures added, over the independent units: prompts), `settled_se`. Other shares keep the plug-in.

**Clusters.** Samples of one prompt are not independent: standard errors are those of the prompts'
means.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import erfc, hypot, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Real, Shaped
from scipy.linalg import hadamard
from torch import Tensor

from maskwalk.errors import MaskwalkError

NORMAL = 1.959963984540054  # two-sided 95 %
LEVEL = 0.05
Values = Float64[np.ndarray, " tests"]
Vector = Float64[np.ndarray, " k"]


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error, from `n` sequences; NaN is written as null."""

    value: float
    se: float
    n: int
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Shaped[Tensor, " n"], prompts: Tensor | None = None) -> "Estimate":
        """The mean of a number per sequence, with the error of the prompts' means."""
        return plain_mean(values, prompts)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a record."""
        shown = {"value": self.value, "se": self.se, "n": self.n, **self.extra}
        return {k: None if isinstance(v, float) and v != v else v for k, v in shown.items()}


# ---------------------------------------------------------------- means and ratios


def mean(values: Shaped[Tensor, " n"], clusters: Tensor | None = None, groups: int = 4) -> Estimate:
    """The mean with a standard error clustered by prompt and the paper's four-group spread.

    The spread (`group_sd`) is numpy's default standard deviation of the means of `groups` parts.
    """
    x = values.to(torch.float64).cpu().numpy()
    if len(x) == 0:
        return Estimate(float("nan"), float("nan"), 0, {})
    names = np.arange(len(x)) if clusters is None else clusters.cpu().numpy()
    names, inverse, sizes = np.unique(names, return_inverse=True, return_counts=True)
    # Every sequence weighs the same, so a cluster's influence is its summed deviation.
    deviation = np.bincount(inverse, x - x.mean(), minlength=len(names))
    scale = len(names) / (len(names) - 1) if len(names) > 1 else float("nan")
    se = float(np.sqrt(scale * (deviation**2).sum()) / len(x))
    spread = float("nan")
    if len(names) >= groups:
        means = np.bincount(inverse, x) / sizes
        spread = float(np.std([part.mean() for part in np.array_split(means, groups)]))
    return Estimate(float(x.mean()), se, len(x), {"group_sd": spread})


def plain_mean(values: Shaped[Tensor, " n"], clusters: Tensor | None = None) -> Estimate:
    """The same without the paper's spread."""
    found = mean(values, clusters)
    return Estimate(found.value, found.se, found.n)


def weighted_mean(values: Tensor, weights: Tensor | None) -> tuple[float, float]:
    """A mean and its standard error; with weights that sum to 1, an exact sum without error."""
    if weights is not None:
        return float((weights * values).sum()), 0.0
    if len(values) < 2 or bool(values.isinf().any()):
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std()) / sqrt(len(values))


def ratio(amounts: Real[Tensor, " n"], sizes: Int[Tensor, " n"]) -> Estimate:
    """Σ amounts / Σ sizes; the error is that of its linearised terms (delta method)."""
    if len(sizes) == 0 or int(sizes.sum()) <= 0:
        raise MaskwalkError("There is nothing to measure: give at least one text, and not empty.")
    amounts, weights = amounts.double().cpu(), sizes.double().cpu()
    value = amounts.sum() / weights.sum()
    return plain_mean(value + (amounts - value * weights) / weights.mean())


def split_groups(n: int, most: int = 16) -> int:
    """How many groups to put `n` sequences in for `half_splits`: a power of two."""
    return 1 << (max(1, min(n, most)).bit_length() - 1)


def half_splits(groups: int) -> Int[np.ndarray, "splits groups"]:
    """Balanced halves of 2, 4, 8, … groups: ±1 says which half; any two splits cross evenly."""
    return np.asarray(hadamard(groups)[1:], dtype=np.int64)


def half_split_se(
    first: Float64[np.ndarray, " splits"], second: Float64[np.ndarray, " splits"]
) -> float:
    """The standard error of a statistic of a whole sample, from its values on halves.

    The halves of a split are independent, so ½ (a − b)² estimates the variance at half the size
    without bias, and the whole has half of that. A jackknife would be wrong for a total variation,
    which has a kink where the truth is: on exact samples it gives 1.66 times the spread.
    """
    return float(np.sqrt(np.mean((first - second) ** 2)) / 2)


def standard_error(values: Sequence[float]) -> float:
    """Of the mean of independent runs."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def standard_errors(values: Float[Tensor, "a b"], dim: int) -> Float[Tensor, " other"]:
    """Of the means along a dimension of a table; NaN where that has one entry."""
    count = values.shape[dim]
    if count == 1:
        return torch.full_like(values.select(dim, 0), torch.nan)
    return values.std(dim) / sqrt(count)


def group_spread_se(sd: float, groups: int = 4) -> float:
    """The standard error of the mean of group means, from their standard deviation as printed.

    Papers print numpy's default (divided by the number of groups, not one less): s/√(groups − 1).
    """
    return sd / sqrt(groups - 1)


# ---------------------------------------------------------------- intervals


def half_width(se: float | None) -> float | None:
    """Half of the 95 % interval; None where the error is not known."""
    return None if se is None else NORMAL * se


def share_se(value: float, n: float) -> float:
    """The standard error of Agresti and Coull's shrunk proportion, (x + 2) / (n + 4)."""
    n = max(n, 1.0)
    share = (value * n + 2) / (n + 4)
    return sqrt(max(share * (1 - share), 0.0) / (n + 4))


def settled_se(value: float, se: float | None, n: float, share: bool = True) -> float | None:
    """The error to print and to test with; `n` counts independent units.

    That of a share of exactly 0 or 1 is Agresti and Coull's; any other is the record's own.
    """
    return share_se(value, n) if share and not se and value in (0.0, 1.0) else se


@dataclass(frozen=True)
class Difference:
    """A mean difference with its 95 % interval and two-sided p-value."""

    value: float
    low: float
    high: float
    p: float


def paired_difference(each: Float64[np.ndarray, " prompts"]) -> Difference:
    """The mean of prompts' differences of shares, its interval and p-value (zero: no difference).

    Mean and standard error are taken with two prompts added, one won and one lost (Bonett & Price
    2012, "Adjusted Wald confidence interval for a difference of binomial proportions based on
    paired data"): 64 ties in 64 prompts are not certainty.
    """
    middle, error = _padded(each)
    low, high = (max(-1.0, min(1.0, middle + side * NORMAL * error)) for side in (-1, 1))
    return Difference(float(each.mean()), low, high, two_sided(middle / error))


def normal_difference(each: Float64[np.ndarray, " units"]) -> Difference:
    """The mean of paired differences that are no shares, its interval and p-value."""
    middle = float(each.mean())
    error = float(each.std(ddof=1)) / sqrt(len(each)) if len(each) > 1 else float("inf")
    if error == 0.0:
        return Difference(middle, middle, middle, float(middle == 0.0))
    half = NORMAL * error
    return Difference(middle, middle - half, middle + half, two_sided(middle / error))


def _padded(each: Float64[np.ndarray, " prompts"]) -> tuple[float, float]:
    padded = np.append(each, [1.0, -1.0])
    return float(padded.mean()), float(padded.std()) / sqrt(len(padded))


def two_sided(z: float) -> float:
    """The p-value of a normal deviate."""
    return erfc(abs(z) / sqrt(2))


def combined(*errors: float | None) -> float:
    """The standard error of a sum or difference of independent numbers."""
    return hypot(*(error or 0.0 for error in errors))


# ---------------------------------------------------------------- goodness of fit


def goodness_of_fit(
    tokens: Int[Tensor, "n length"], outputs: Int[Tensor, "m length"], probs: Tensor
) -> tuple[float, int]:
    """Pearson's statistic of drawn sequences against a law; rare outputs are pooled."""
    table = {tuple(row): i for i, row in enumerate(outputs.tolist())}
    where = [table.get(tuple(row), -1) for row in tokens.tolist()]
    if -1 in where:
        return float("inf"), 1
    counts = np.bincount(where, minlength=len(outputs)).astype(float)
    expected = probs.numpy() * len(tokens)
    order = np.argsort(expected)
    # Pool neighbours in order of expectation until every bin expects at least eight.
    edges, total = [0], 0.0
    for i, e in enumerate(expected[order]):
        total += e
        if total >= 8:
            edges.append(i + 1)
            total = 0.0
    edges[-1] = len(order)
    if len(edges) < 3:
        return 0.0, 1
    seen = np.add.reduceat(counts[order], edges[:-1])
    want = np.add.reduceat(expected[order], edges[:-1])
    return float(((seen - want) ** 2 / want).sum()), len(want) - 1


# ---------------------------------------------------------------- many comparisons


def holm(p: Values, comparisons: int | None = None) -> Values:
    """Corrected p-values, in the order given, by Holm's step-down (1979).

    The k-th smallest of n is multiplied by n - k + 1, and never becomes smaller than one before it.
    Whatever the dependence between the tests, the chance of even one false alarm is then at most
    the level. Where only the smallest are at hand, `comparisons` says how many were made in all.
    """
    made = max(comparisons or 0, len(p))
    order = p.argsort(kind="stable")
    steps = np.minimum(p[order] * (made - np.arange(len(p))), 1.0)
    out = np.empty(len(p))
    out[order] = np.maximum.accumulate(steps)
    return out


# ---------------------------------------------------------------- fronts


def pareto_front(points: Sequence[tuple[float, float]], sign: int) -> list[int]:
    """Indices of the (cost, value) that no other beats in both; sign 1: higher is better."""
    front: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], -sign * points[i][1], i)):
        if not front or sign * (points[i][1] - points[front[-1]][1]) > 0:
            front.append(i)
    return front


def clear_steps(
    values: Sequence[float], errors: Sequence[float | None], front: Sequence[int], sign: int
) -> list[int]:
    """The steps of a front whose gain over the step kept before leaves its interval."""
    kept: list[int] = []
    for i in front:
        last = kept[-1] if kept else None
        noise = 0.0 if last is None else NORMAL * combined(errors[i], errors[last])
        if last is None or sign * (values[i] - values[last]) > noise:
            kept.append(i)
    return kept


def best_mixture(calls: Vector, quality: Vector, at: float, single: bool = False) -> Vector | None:
    """The weights of the best mixture with at most `at` calls; None if nothing is so cheap.

    Two baselines mixed by a coin have the mixture's calls and quality, so the front of mixtures is
    the upper concave hull: max Σ w q subject to Σ w c ≤ at, Σ w = 1, w ≥ 0. At most two weights are
    not zero. Among equals: one baseline rather than two, then fewer calls.
    """
    best: tuple[float, int, float] | None = None
    weights = np.zeros(len(calls))
    cheap = np.flatnonzero(calls <= at + 1e-9)
    for i in cheap:
        here = (float(quality[i]), 0, -float(calls[i]))
        if best is None or here > best:
            best, weights = here, np.eye(len(calls))[i]
    for i in cheap if not single else ():
        for j in np.flatnonzero((calls > at + 1e-9) & (quality > quality[i])):
            share = float((at - calls[i]) / (calls[j] - calls[i]))
            value = float((1 - share) * quality[i] + share * quality[j])
            if best is not None and value > best[0] + 1e-12:
                best = (value, -1, -at)
                weights = (1 - share) * np.eye(len(calls))[i] + share * np.eye(len(calls))[j]
    return None if best is None else weights


def fewest_calls(calls: Vector, quality: Vector, wanted: float) -> float | None:
    """The fewest calls with which a mixture of the baselines has the wanted quality."""
    found = [float(c) for c, q in zip(calls, quality) if q >= wanted - 1e-12]
    for ci, qi in zip(calls, quality):
        for cj, qj in zip(calls, quality):
            if qi < wanted < qj and ci < cj:
                found.append(float(ci + (wanted - qi) / (qj - qi) * (cj - ci)))
    return min(found, default=None)


def mixture_front(calls: Vector, quality: Vector) -> list[int]:
    """The baselines on the hull: those no mixture with at most as many calls is better than."""
    own: list[int] = []
    for i in np.argsort(calls, kind="stable"):
        weights = best_mixture(calls, quality, float(calls[i]))
        if weights is not None and weights[i] > 0.5:
            own.append(int(i))
    return own
