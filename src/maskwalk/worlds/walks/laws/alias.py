"""The alias method over the rows of a sparse kernel [Walker 1977, Vose 1991].

Row u with d entries becomes d slots of equal width 1/d; slot i holds entry i up to a threshold and
one other entry, its alias, above it. One uniform x = u·d then draws a token in constant time: the
slot is floor(x), and the fraction left over is compared with the threshold.
"""

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import csr_array


class Alias:
    """Draws from the rows of a sparse matrix of probabilities; entries must be positive."""

    def __init__(self, kernel: csr_array) -> None:
        self.targets = kernel.indices.astype(np.int64)
        self.starts = kernel.indptr.astype(np.int64)
        self.degree = np.diff(self.starts)
        self.threshold = np.ones(len(self.targets))
        self.other = self.targets.copy()
        row = np.repeat(np.arange(len(self.degree)), self.degree)
        total = np.bincount(row, weights=kernel.data, minlength=len(self.degree))
        share = kernel.data * self.degree[row] / total[row]  # of slots; 1 is exactly one slot
        uneven = np.unique(row[np.abs(share - 1.0) > 1e-15])
        for u in uneven.tolist():
            self._fill(share, int(self.starts[u]), int(self.starts[u + 1]))

    def _fill(self, share: Float64[np.ndarray, " entries"], low: int, high: int) -> None:
        """Vose's construction for one row: a slot too small is topped up by one too large."""
        left = share[low:high].tolist()
        small = [i for i, s in enumerate(left) if s < 1.0]
        large = [i for i, s in enumerate(left) if s >= 1.0]
        while small and large:
            i, j = small.pop(), large[-1]
            self.threshold[low + i] = left[i]
            self.other[low + i] = self.targets[low + j]
            left[j] -= 1.0 - left[i]
            if left[j] < 1.0:
                small.append(large.pop())
        # What remains is a full slot up to rounding, and keeps threshold 1.

    def draw(
        self, rows: Int64[np.ndarray, " count"], u: Float64[np.ndarray, " count"]
    ) -> Int64[np.ndarray, " count"]:
        """One token from each row named, from one uniform in [0, 1) each."""
        x = u * self.degree[rows]
        slot = x.astype(np.int64)  # below the degree: u < 1 rounds down (tested)
        x -= slot
        slot += self.starts[rows]
        keep = x < self.threshold[slot]
        return np.asarray(np.where(keep, self.targets[slot], self.other[slot]))

    def walk(
        self, starts: Int64[np.ndarray, " count"], u: Float64[np.ndarray, "count steps"]
    ) -> Int64[np.ndarray, "count steps"]:
        """The `steps` tokens that follow each start."""
        columns = np.ascontiguousarray(u.T)
        walks = np.empty(columns.shape, dtype=np.int64)
        at = starts
        for t, column in enumerate(columns):
            at = walks[t] = self.draw(at, column)
        return walks.T
