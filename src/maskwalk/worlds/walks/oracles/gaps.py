"""What the oracles of first-order laws share: a place depends on its gap alone.

Only the nearest revealed tokens on either side of a masked position matter, so its conditional is a
row of one table (what the left one says) times a row of another (what the right one says). Token V
stands for what lies beyond the ends.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import normalise
from maskwalk.kernels.rows import log_over
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.walks.oracles.base import Oracle, chunks

CACHE, DEVICE = 2**16, 2**24  # numbers in a chunk: in a processor's cache, on an accelerator
# Tables hold 2^500 times the probabilities: then products of two entries as small as 1e-300 do not
# underflow.
SCALE = 2.0**500


@dataclass(frozen=True)
class Gap:
    """For each place: its position, the nearest revealed tokens and how many steps away they are;
    token V at position −1 and at position L."""

    position: Int[Tensor, " places"]
    left: Int[Tensor, " places"]
    steps_left: Int[Tensor, " places"]
    right: Int[Tensor, " places"]
    steps_right: Int[Tensor, " places"]

    def __getitem__(self, some: Tensor) -> "Gap":
        return Gap(*(column[some] for column in vars(self).values()))


@dataclass(frozen=True)
class Sides:
    """On one device: rows of what a token on the left says, and of what one on the right says."""

    left: Float[Tensor, "entries vocab"]
    right: Float[Tensor, "entries vocab"]


S = TypeVar("S", bound=Sides)


class GapOracle(Oracle, Generic[S]):
    """Exact marginals from two look-ups and a product."""

    def __init__(self, law: WalkLaw) -> None:
        super().__init__(law)
        self._tables: dict[torch.device, S] = {}

    @abstractmethod
    def _build(self, device: torch.device) -> S:
        """The tables on a device."""

    @abstractmethod
    def _rows(self, gap: Gap) -> tuple[Tensor, Tensor]:
        """The rows of the left and of the right table that belong to each place."""

    @abstractmethod
    def _leak(self, tables: S, gap: Gap) -> Tensor:
        """The weights with the fewest leaks, for places in gaps that no walk joins."""

    def tables(self, device: torch.device) -> S:
        """The tables on a device, built when first asked for."""
        if device not in self._tables:
            self._tables[device] = self._build(device)
        return self._tables[device]

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Log-marginals of the places in `at`, packed."""
        rows, columns = self._places(tokens, at).nonzero(as_tuple=True)
        tables = self.tables(tokens.device)
        gap = gaps(tokens, rows, columns, self.mask_id)
        left, right = self._rows(gap)
        answer = tokens.new_empty((len(rows), self.vocab_size), dtype=torch.float64)
        possible = tokens.new_empty(len(rows), dtype=torch.bool)
        size = (CACHE if tokens.device.type == "cpu" else DEVICE) // self.vocab_size
        for part in chunks(len(rows), size):
            weights = tables.left.index_select(0, left[part])
            weights *= tables.right.index_select(0, right[part])
            total = weights.sum(-1, keepdim=True)
            log_over(weights.div_(total), answer[part])
            possible[part] = total[:, 0] > 0
        (impossible,) = (~possible).nonzero(as_tuple=True)
        self.impossible += len(rows[impossible].unique())
        for part in chunks(len(impossible), size):
            some = impossible[part]
            answer[some] = normalise(self._leak(tables, gap[some]))
        return answer


def gaps(tokens: Tensor, rows: Tensor, columns: Tensor, mask_id: int) -> Gap:
    """The gap of each place (row, column) of some canvases."""
    batch, length = tokens.shape
    edge = tokens.new_full((batch, 1), mask_id)
    padded = torch.cat([edge, tokens, edge], 1)
    here = torch.arange(length + 2, device=tokens.device)
    known = (padded != mask_id) | (here == 0) | (here == length + 1)
    before = torch.where(known, here, 0).cummax(1).values[rows, columns + 1]
    after = torch.where(known, here, length + 1).flip(1).cummin(1).values.flip(1)
    after = after[rows, columns + 1]
    return Gap(
        columns,
        padded[rows, before],
        columns + 1 - before,
        padded[rows, after],
        after - columns - 1,
    )
