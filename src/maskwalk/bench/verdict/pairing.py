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

Intervals and p-values: `stats.paired_difference`.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int

from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.stats import best_mixture

FOLDS = 2


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
