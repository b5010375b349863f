"""MAUVE (Pillutla et al., 2021): how close the texts' features lie to those of reference texts.

Both sets of features are put into common buckets by k-means (as many as a tenth of the smaller
set), and the two histograms are compared; 1 is the same, 0 is disjoint. It depends on the number of
texts, so compare values of equal numbers, and beside them the floor: held-out text against other
held-out text.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from jaxtyping import Float

from maskwalk.errors import MaskwalkError
from maskwalk.resources import need
from maskwalk.stats import Estimate

SCALE = 5.0
CLUSTERINGS = 5
RESAMPLINGS = 40
FEWEST = 20  # texts on a side: two buckets


def mauve(
    features: Float[np.ndarray, "texts hidden"],
    reference: Float[np.ndarray, "references _"],
    seed: int = 0,
) -> Estimate:
    """The mean of MAUVE over several k-means clusterings of all texts, and its standard error.

    k-means ends somewhere else from every seed, which can move a single MAUVE more than the texts
    do. The squared standard error is the variance over clusterings, divided by their number, plus
    the variance when both histograms are drawn anew as often as there are texts (a bootstrap within
    buckets, averaged over clusterings). In simulations with 256 texts it was 1 to 1.5 times the
    true one, and more where MAUVE nears 1: the bootstrap adds noise to histograms that have some.
    """
    least = min(len(features), len(reference))
    if least < FEWEST:
        raise MaskwalkError(f"MAUVE needs at least {FEWEST} texts on either side, not {least}.")
    if features.shape[1] != reference.shape[1]:
        raise MaskwalkError(
            f"MAUVE compares features of one judge, and these have {features.shape[1]} and "
            f"{reference.shape[1]} numbers per text."
        )
    generator = np.random.default_rng(seed)
    values, variances = [], []
    # One thread: the clusterings are small, and threads wait for each other longer than they work.
    with _quiet(), need("threadpoolctl").threadpool_limits(1):
        package = need("mauve")
        for clustering in range(CLUSTERINGS):
            comparison = package.compute_mauve(
                p_features=features,
                q_features=reference,
                mauve_scaling_factor=SCALE,
                seed=seed * CLUSTERINGS + clustering,
            )
            values.append(float(comparison.mauve))
            again = [
                _area(
                    generator.multinomial(len(features), comparison.p_hist) / len(features),
                    generator.multinomial(len(reference), comparison.q_hist) / len(reference),
                )
                for _ in range(RESAMPLINGS)
            ]
            variances.append(np.var(again, ddof=1))
    squared = np.var(values, ddof=1) / CLUSTERINGS + np.mean(variances)
    extra = {"references": len(reference), "buckets": int(comparison.num_buckets)}
    return Estimate(float(np.mean(values)), float(np.sqrt(squared)), len(features), extra)


def _area(p: Float[np.ndarray, " buckets"], q: Float[np.ndarray, " buckets"]) -> float:
    """MAUVE of two histograms: the area under the curve of exp(-c KL) to their mixtures."""
    share = np.linspace(1e-6, 1 - 1e-6, 25)[:, None]
    mixtures = share * p + (1 - share) * q
    x, y = (
        np.exp(-SCALE * (h[h > 0] * np.log(h[h > 0] / mixtures[:, h > 0])).sum(1)) for h in (q, p)
    )
    x, y = np.concatenate([[1], x, [0]]), np.concatenate([[0], y, [1]])
    return float(((x[:-1] - x[1:]) * (y[:-1] + y[1:])).sum() / 2)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings, and without what faiss writes from C when buckets hold few texts."""
    sys.stderr.flush()
    stderr, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nothing)
