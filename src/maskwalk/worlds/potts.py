"""The Potts model on a strip: cells that like to agree with their neighbours.

    p(x) = exp(β Σ_{neighbouring cells} 1[x_i = x_j]) / Z,     open boundary

β = 0 is independent cells, large β is frozen. Every sequence is possible, so coherence is 1
whatever a sampler does: rank by replay KL. A whole column of cells separates left from right; in
token order a block of `height` cells does if the order is column by column, and none of that size
if it is row by row.
"""

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.worlds.exact.chain import ChainWorld, Column
from maskwalk.worlds.separators import Separator, halved
from maskwalk.worlds.tasks import TASKS, Prompts, reveal_held_out
from maskwalk.worlds.world import WORLDS, World

ORDERS = ("rows", "columns")  # of the cells in the sequence
LARGEST = 512  # states of a column
STEEPEST = 20.0


@WORLDS.register("potts")
class Potts(ChainWorld):
    """Cells of a strip that agree with their neighbours, more so for larger beta."""

    full_support = True

    def __init__(
        self,
        height: int = 4,
        width: int = 6,
        states: int = 2,
        beta: float = 0.9,
        order: str = "rows",
    ) -> None:
        self.height, self.width = whole("height", height, 1), whole("width", width, 1)
        self.states, self.layout = whole("states", states, 2), one_of("order", order, ORDERS)
        self.beta = real("beta", beta, -STEEPEST, STEEPEST)
        if height > LARGEST or states**height > LARGEST:
            raise MaskwalkError(
                f"A column of {height} cells with {states} states has {states}^{height} states, "
                f"more than {LARGEST}: take a lower strip (it may be as wide as you like)."
            )
        whole("height × width", height * width, 1, 65_535)
        start = np.zeros(states**height)
        start[0] = 1.0
        super().__init__(states, self._columns(), start, np.ones(len(start)))

    @property
    def cells(self) -> Int64[np.ndarray, "height width"]:
        """The position of every cell in the sequence."""
        if self.layout == "rows":
            return np.arange(self.height * self.width).reshape(self.height, self.width)
        return np.arange(self.height * self.width).reshape(self.width, self.height).T

    def _columns(self) -> list[Column]:
        """Transfer from column to column: the state is the column's own cells."""
        symbols = np.stack(np.unravel_index(np.arange(self.states**self.height), self._shape), 1)
        own = (symbols[:, 1:] == symbols[:, :-1]).sum(1)
        across = (symbols[:, None, :] == symbols[None, :, :]).sum(2)
        state = np.arange(len(symbols))
        first = np.exp(self.beta * (own - own.max()))
        agree = across + own
        later = np.exp(self.beta * (agree - agree.max())).ravel()
        source, target = (x.ravel() for x in np.indices(agree.shape))
        positions = [tuple(column) for column in self.cells.T.tolist()]
        return [
            Column(positions[0], symbols, np.zeros_like(state), state, state, first),
            *(Column(at, symbols, source, target, target, later) for at in positions[1:]),
        ]

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.states,) * self.height

    def separators(self) -> Separator:
        """The middle column of the strip, and the halves."""
        return halved([column.positions for column in self.columns])

    def pairs(self) -> list[tuple[int, int]]:
        """Neighbouring cells."""
        cells = self.cells
        across = zip(cells[:, :-1].ravel().tolist(), cells[:, 1:].ravel().tolist())
        down = zip(cells[:-1].ravel().tolist(), cells[1:].ravel().tolist())
        return [*across, *down]

    def valid(self, tokens: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """Every sequence is possible."""
        self.check(tokens)
        return torch.ones(tokens.shape, dtype=torch.bool, device=tokens.device)

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The strip, a sign for each state; · is masked."""
        signs = [str(i) for i in range(self.states)] if self.states > 4 else list("█░▒▓")
        signs = [*signs[: self.states], "·"]
        return "\n".join("".join(signs[int(tokens[i])] for i in row) for row in self.cells.tolist())


@TASKS.register("frame")
def frame(world: World, prompts: int, seed: int) -> Prompts:
    """Fill in a strip (potts) whose border cells are given."""
    if not isinstance(world, Potts):
        raise MaskwalkError("frame is a task of strips, potts(…); this world is another.")
    inside = set(world.cells[1:-1, 1:-1].ravel().tolist())
    if not inside:
        raise MaskwalkError("This strip is all border: frame needs at least 3 × 3 cells.")
    border = [i for i in range(world.length) if i not in inside]
    return reveal_held_out(world, prompts, seed, border)
