"""Words of a fixed length that an automaton accepts: automaton × chain, exact.

The state is a function of the letters so far, so every word has one path and the law is that of the
paths: uniform over the accepted words, or each weighted by the product of its letters' weights.
"""

import numpy as np
from jaxtyping import Int64

from maskwalk.worlds.exact.chain import ChainWorld, Column
from maskwalk.worlds.exact.world import neighbours


class AutomatonWorld(ChainWorld):
    """Words of `length` letters along `transitions` (states, letters; -1: none) to `accepting`."""

    def __init__(
        self,
        transitions: Int64[np.ndarray, "states letters"],
        accepting: list[int],
        length: int,
        weights: list[float] | None = None,
    ) -> None:
        states, letters = transitions.shape
        self.uniform = weights is None
        source, letter = np.nonzero(transitions >= 0)
        each = np.ones(letters) if weights is None else np.array(weights, dtype=np.float64)
        edges = (source, letter, transitions[source, letter], each[letter])
        columns = [Column((t,), np.arange(letters)[:, None], *edges) for t in range(length)]
        start, end = np.zeros(states), np.zeros(states)
        start[0], end[accepting] = 1.0, 1.0
        super().__init__(letters, columns, start, end)

    def pairs(self) -> list[tuple[int, int]]:
        """Neighbouring letters."""
        return neighbours(self.length)
