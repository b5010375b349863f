"""Latin squares: every value once in each row and each column. No small part separates the rest."""

from functools import lru_cache
from itertools import permutations

import numpy as np
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.exact.grids import show_grid, uniques
from maskwalk.worlds.exact.solutions import Solutions
from maskwalk.worlds.tasks import TASKS, Prompts, reveal_some
from maskwalk.worlds.world import WORLDS, World

LARGEST = 5  # there are 812,851,200 squares of 6


@WORLDS.register("latin")
class Latin(Solutions):
    """Latin squares of n × n cells, all equally likely: 576 for n=4, 161,280 for n=5."""

    def __init__(self, n: int = 4) -> None:
        self.n = whole("n", n, 2)
        if n > LARGEST:
            raise MaskwalkError(
                f"n must be a whole number from 2 to {LARGEST}, not {n}: all squares are listed, "
                "and there are 812,851,200 of 6 × 6."
            )
        super().__init__(squares(n), n)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, self.n

    def units(self) -> Int64[np.ndarray, "units cells"]:
        """The cells that hold every value once."""
        cells = np.arange(self.n**2).reshape(self.n, self.n)
        return np.concatenate([cells, cells.T])

    def valid(self, tokens: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """False where a value repeats an earlier one of its row or column."""
        self.check(tokens)
        return uniques(tokens, self.units())

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The square; · is masked, ✗ marks a value that repeats an earlier one."""
        return show_grid(tokens, self.shape, self.units(), self.vocab_size)


@lru_cache(maxsize=4)
def squares(n: int) -> Int[np.ndarray, "squares cells"]:
    """All Latin squares of n × n, row after row, in lexicographic order."""
    rows = np.array(list(permutations(range(n))), dtype=np.int8)
    bits = 1 << rows.astype(np.int64)
    table, used = np.zeros((1, 0), dtype=np.int8), np.zeros((1, n), dtype=np.int64)
    for _ in range(n):
        free = np.stack([(used & bits[r]).max(1) == 0 for r in range(len(rows))], 1)
        square, row = np.nonzero(free)
        table = np.concatenate([table[square], rows[row]], 1)
        used = used[square] | bits[row]
    return table


@TASKS.register("clues")
def clues(world: World, prompts: int, seed: int, count: int = 6) -> Prompts:
    """Complete a grid (latin, sudoku) from so many cells of a held-out one, at random places."""
    if not hasattr(world, "units"):
        raise MaskwalkError("clues is a task of grids: latin(…) or sudoku(…).")
    fewest = getattr(world, "fewest_clues", 0)
    return reveal_some(world, prompts, seed, whole("count", count, fewest, world.length - 1))
