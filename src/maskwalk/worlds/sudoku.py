"""Sudoku: a Latin square whose boxes hold every value once, too.

`box=2` is the uniform law over all 288 grids of 4 × 4. `box=3` is checked, not exact: its grids are
those one pattern gives when digits, rows within bands, bands, columns within stacks and stacks are
shuffled and the grid is transposed or not, all equally likely; nobody counts the grids that agree
with a few clues, so it has no log_prob, entropy or oracle.
"""

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.exact.grids import show_grid, uniques
from maskwalk.worlds.exact.solutions import Solutions
from maskwalk.worlds.latin import squares
from maskwalk.worlds.world import WORLDS


class Grid(Solutions):
    """Sudoku grids from a table of all of them."""

    def __init__(self, box: int, table: Int[np.ndarray, "grids cells"]) -> None:
        self.box = box
        super().__init__(table, box**2)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.box**2, self.box**2

    def units(self) -> Int64[np.ndarray, "units cells"]:
        """Rows, columns and boxes."""
        return units(self.box)

    def valid(self, tokens: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """False where a value repeats an earlier one of its row, column or box."""
        self.check(tokens)
        return uniques(tokens, self.units())

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The grid; · is masked, ✗ marks a value that repeats an earlier one."""
        return show_grid(tokens, self.shape, self.units(), self.vocab_size, self.box)


class Shuffled(Grid):
    """9 × 9 grids by a generator whose law nobody can condition: checked, not exact."""

    draws = 1 + 9 + 2 * (3 + 9)
    fewest_clues = 30

    def __init__(self) -> None:
        row, column = np.divmod(np.arange(81), 9)
        pattern = (3 * (row % 3) + row // 3 + column) % 9
        super().__init__(3, pattern[None].astype(np.int8))

    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        """The pattern with digits, lines and axes shuffled."""
        grids = self.table.reshape(1, 9, 9).repeat(len(u), 0)
        place = np.arange(len(u))[:, None, None]
        rows, columns = _lines(u[:, 10:22]), _lines(u[:, 22:34])
        grids = u[:, 1:10].argsort(1)[place, grids[place, rows[:, :, None], columns[:, None, :]]]
        grids = np.where(u[:, :1, None] < 0.5, grids, grids.transpose(0, 2, 1))
        return np.asarray(grids.reshape(len(u), 81))

    def log_prob(self, tokens: Int[Tensor, "count length"]) -> None:  # type: ignore[override]
        """Nobody asks: the conditionals are what matters, and they are not known."""

    def entropy(self) -> None:  # type: ignore[override]
        """Not known."""

    def oracle(self) -> None:  # type: ignore[override]
        """There is none: 30 clues already have too many completions to count quickly."""

    support = None  # type: ignore[assignment]


def _lines(u: Float64[np.ndarray, "count twelve"]) -> Int64[np.ndarray, "count nine"]:
    """An order of nine lines that keeps bands together: bands, then the lines of each."""
    bands = u[:, :3].argsort(1)
    inner = u[:, 3:].reshape(-1, 3, 3).argsort(2)
    return (3 * bands[:, :, None] + inner).reshape(len(u), 9)


def units(box: int) -> Int64[np.ndarray, "units cells"]:
    """The cells of every row, column and box."""
    side = box**2
    cells = np.arange(side**2).reshape(side, side)
    boxes = cells.reshape(box, box, box, box).swapaxes(1, 2).reshape(side, side)
    return np.concatenate([cells, cells.T, boxes])


@WORLDS.register("sudoku")
def sudoku(box: int = 2) -> Grid:
    """Sudoku grids: all 288 of 4 × 4 (box=2), or a generator's 9 × 9 (box=3, checked only)."""
    if whole("box", box, 2) == 2:
        table = squares(4)
        boxes = np.sort(table[:, units(2)[8:]], 2)
        return Grid(2, table[(boxes == np.arange(4)).all((1, 2))])
    if box == 3:
        return Shuffled()
    raise MaskwalkError(f"box must be 2 (4 × 4, exact) or 3 (9 × 9, checked), not {box}.")
