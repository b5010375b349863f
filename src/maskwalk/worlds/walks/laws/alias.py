"""The alias method over the rows of a sparse kernel [Walker 1977, Vose 1991].

Row u with d entries becomes d slots of equal width 1/d; slot i holds entry i up to a threshold and
one other entry, its alias, above it. One uniform x = u·d then draws a token in constant time: the
slot is floor(x), and the fraction left over is compared with the threshold.

With a million rows it is the memory that takes the time. So a slot of 32 bytes holds all that a
step of a walk reads: the threshold, both tokens, and where the row of each begins and how long it
is. A step is one look at a place that no cache holds, not two.
"""

import numpy as np
from jaxtyping import Float64, Int32, Int64
from scipy.sparse import csr_array

TOGETHER = 64  # rows of one width that are filled together
AT_ONCE = 2**20  # entries of such rows
LONG = 31  # bits of a row's length; the others say where it begins


class Alias:
    """Draws from the rows of a sparse matrix of probabilities; entries must be positive."""

    def __init__(self, kernel: csr_array) -> None:
        self.starts = kernel.indptr.astype(np.int64)
        self.degree = np.diff(self.starts)
        self._slots = np.empty((kernel.nnz, 4), dtype=np.int64)
        tokens = self._slots.view(np.int32)
        self.threshold = self._slots.view(np.float64)[:, 0]
        self.targets, self.other = tokens[:, 2], tokens[:, 3]
        self.threshold[:], self.targets[:], self.other[:] = 1.0, kernel.indices, kernel.indices
        row = np.repeat(np.arange(len(self.degree)), self.degree)
        total = np.bincount(row, weights=kernel.data, minlength=len(self.degree))
        share = kernel.data * self.degree[row] / total[row]  # of slots; 1 is exactly one slot
        odd = np.zeros(len(self.degree), dtype=bool)
        odd[row[np.abs(share - 1.0) > 1e-15]] = True
        by_width = np.bincount(self.degree[odd])
        for width in np.flatnonzero(by_width).tolist():
            (rows,) = np.nonzero(odd & (self.degree == width))
            if len(rows) < TOGETHER:
                for u in rows.tolist():
                    self._fill(share, int(self.starts[u]), int(self.starts[u + 1]))
                continue
            for part in np.array_split(rows, -(-len(rows) * width // AT_ONCE)):
                self._fill_together(share, self.starts[part], width)
        self._rows = np.zeros(max(kernel.shape), dtype=np.int64)  # a token may have no row
        self._rows[: kernel.shape[0]] = self.starts[:-1] << LONG | self.degree
        self._slots[:, 2] = self._rows[self.targets]
        self._slots[:, 3] = self._rows[self.other]

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

    def _fill_together(
        self, share: Float64[np.ndarray, " entries"], low: Int64[np.ndarray, " rows"], width: int
    ) -> None:
        """The same for many rows of one width, a move of each at a time."""
        left = share[low[:, None] + np.arange(width)]
        # Stacks: the slots of each kind in order, and how many there are.
        order = np.argsort(left >= 1.0, axis=1, kind="stable")
        few = (left < 1.0).sum(1)
        large = np.take_along_axis(order, (few[:, None] + np.arange(width)) % width, 1)
        small, many = order, width - few
        (row,) = np.nonzero((few > 0) & (many > 0))
        while len(row):
            few[row] -= 1
            i, j = small[row, few[row]], large[row, many[row] - 1]
            taken = left[row, i]
            self.threshold[low[row] + i] = taken
            self.other[low[row] + i] = self.targets[low[row] + j]
            left[row, j] -= 1.0 - taken
            spent = left[row, j] < 1.0
            many[row[spent]] -= 1
            small[row[spent], few[row[spent]]] = j[spent]
            few[row[spent]] += 1
            row = row[(few[row] > 0) & (many[row] > 0)]

    def draw(
        self, rows: Int64[np.ndarray, " count"], u: Float64[np.ndarray, " count"]
    ) -> Int64[np.ndarray, " count"]:
        """One token from each row named, from one uniform in [0, 1) each."""
        room = np.empty((len(rows), 4), dtype=np.int64)
        return self._step(self._rows.take(rows), u, room)[0].astype(np.int64)

    def walk(
        self, starts: Int64[np.ndarray, " count"], u: Float64[np.ndarray, "count steps"]
    ) -> Int64[np.ndarray, "count steps"]:
        """The `steps` tokens that follow each start."""
        columns = np.ascontiguousarray(u.T)
        walks = np.empty(columns.shape, dtype=np.int64)
        found = np.empty((len(starts), 4), dtype=np.int64)
        rows = self._rows.take(starts)
        for t, column in enumerate(columns):
            walks[t], rows = self._step(rows, column, found)
        return walks.T

    def _step(
        self,
        rows: Int64[np.ndarray, " count"],
        u: Float64[np.ndarray, " count"],
        found: Int64[np.ndarray, "count 4"],
    ) -> tuple[Int32[np.ndarray, " count"], Int64[np.ndarray, " count"]]:
        """A token from each packed row, and the packed row of that token; `found` is room."""
        x = u * (rows & ((1 << LONG) - 1))
        slot = x.astype(np.int64)  # below the degree: u < 1 rounds down (tested)
        x -= slot
        slot += rows >> LONG
        # The slots are in range by construction; a mode other than "raise" saves a copy.
        self._slots.take(slot, 0, found, "clip")
        tokens = found.view(np.int32)
        keep = x < found.view(np.float64)[:, 0]
        return np.where(keep, tokens[:, 2], tokens[:, 3]), np.where(keep, found[:, 2], found[:, 3])
