"""Is it better at the same number of calls? Paired differences, and the front they are taken from.

Matched calls. A policy that takes c calls on average meets the best that baselines do with at most
c. Two baselines mixed by a coin, a share w of the sequences with one and the rest with the other,
take w c_1 + (1 − w) c_2 calls and are coherent w q_1 + (1 − w) q_2 of the time: anybody can run
the mixture, so the front is the upper concave hull of the baselines' points. Its best point at c
calls,

    max  Σ w_k q_k    subject to    Σ w_k c_k ≤ c,  Σ w_k = 1,  w ≥ 0,

mixes at most two of them. (`single` allows one: the best baseline with at most c calls.)

Paired. All samplers had the same prompts, sequence ids and seed, so the difference is taken prompt
by prompt, d_i = y_i − Σ w_k y_ki, and the prompts' d_i are what varies (samples of one prompt are
averaged first: clusters). The opponent is chosen on one half of the prompts and met on the other,
both ways: chosen on the same ones, the luckiest of twenty would look better than it is. (More folds
share prompts, so that their differences vary together: with twenty equal baselines two halves give
6 to 7 % false alarms at the 5 % level, four folds 8 to 11 %.)

Interval. Mean and standard error with two prompts added, one won and one lost (Bonett & Price 2012,
"Adjusted Wald confidence interval for a difference of binomial proportions based on paired data"):
64 ties in 64 prompts are not certainty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
from jaxtyping import Float64, Int

from maskwalk.bench.verdict.outcomes import Outcome

FOLDS = 2
LEVEL = 0.05
NORMAL = 1.959963984540054  # two-sided 95 %
Vector = Float64[np.ndarray, " k"]


@dataclass(frozen=True)
class Difference:
    """A mean difference with its 95 % interval and two-sided p-value."""

    value: float
    low: float
    high: float
    p: float


def difference(each: Float64[np.ndarray, " prompts"]) -> Difference:
    """The mean of the prompts' differences, its interval and p-value (zero: no difference)."""
    padded = np.append(each, [1.0, -1.0])
    middle = float(padded.mean())
    error = float(padded.std()) / sqrt(len(padded))
    low, high = (max(-1.0, min(1.0, middle + side * NORMAL * error)) for side in (-1, 1))
    return Difference(float(each.mean()), low, high, erfc(abs(middle) / error / sqrt(2)))


def above_zero(each: Float64[np.ndarray, " prompts"]) -> float:
    """The one-sided p-value of a mean above zero, with the same two prompts added."""
    found = difference(each)
    return found.p / 2 if float(np.append(each, [1.0, -1.0]).mean()) > 0 else 1.0


def best_mixture(calls: Vector, quality: Vector, at: float, single: bool = False) -> Vector | None:
    """The weights of the best mixture with at most `at` calls; None if nothing is so cheap.

    At most two weights are not zero. Among equals: one baseline rather than two, then fewer calls.
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


def opponents(
    baselines: Sequence[Outcome], at: float, single: bool = False
) -> Float64[np.ndarray, " prompts"] | None:
    """Prompt by prompt, the coherence of the best mixture at `at` calls, chosen on other prompts.

    None where in some fold no baseline is so cheap.
    """
    quality = np.stack([b.coherent for b in baselines])
    calls = np.stack([b.calls for b in baselines])
    fold = folds(quality.shape[1])
    met = np.zeros(quality.shape[1])
    for part in range(FOLDS):
        rest = fold != part
        weights = best_mixture(calls[:, rest].mean(1), quality[:, rest].mean(1), at, single)
        if weights is None:
            return None
        met[~rest] = weights @ quality[:, ~rest]
    return met


def folds(prompts: int) -> Int[np.ndarray, " prompts"]:
    """Which half each prompt is in: always the same, equal in size, and no pattern in the order."""
    return np.random.Generator(np.random.Philox(prompts)).permutation(prompts) % FOLDS


def fewest_calls(calls: Vector, quality: Vector, wanted: float) -> float | None:
    """The fewest calls with which a mixture of the baselines is coherent `wanted` of the time."""
    found = [float(c) for c, q in zip(calls, quality) if q >= wanted - 1e-12]
    for ci, qi in zip(calls, quality):
        for cj, qj in zip(calls, quality):
            if qi < wanted < qj and ci < cj:
                found.append(float(ci + (wanted - qi) / (qj - qi) * (cj - ci)))
    return min(found, default=None)


def front(calls: Vector, quality: Vector) -> list[int]:
    """The baselines on the hull: those no mixture with at most as many calls is better than."""
    own: list[int] = []
    for i in np.argsort(calls, kind="stable"):
        weights = best_mixture(calls, quality, float(calls[i]))
        if weights is not None and weights[i] > 0.5:
            own.append(int(i))
    return own
