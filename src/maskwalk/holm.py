"""Many comparisons, one chance of a false alarm: Holm's step-down correction.

Holm (1979): the k-th smallest of n p-values is multiplied by n - k + 1, and never becomes smaller
than one before it. Whatever the dependence between the tests, the chance of even one false alarm is
then at most the level.
"""

import numpy as np
from jaxtyping import Float64

Values = Float64[np.ndarray, " tests"]


def holm(p: Values, comparisons: int | None = None) -> Values:
    """Corrected p-values, in the order given.

    Where only the smallest are at hand, `comparisons` says how many were made in all.
    """
    order = p.argsort(kind="stable")
    steps = np.minimum(p[order] * ((comparisons or len(p)) - np.arange(len(p))), 1.0)
    out = np.empty(len(p))
    out[order] = np.maximum.accumulate(steps)
    return out
