"""Uniform laws over a table of all solutions: filter by what is revealed, then count.

With the table one-hot encoded as a 0/1 matrix T (solutions × positions·values), a canvas c that is
revealed at r places agrees with the solutions where T c = r, and the counts of every value at every
position are Tᵀ[T c = r]. Both products hold whole numbers, so they are exact in any order.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from maskwalk.worlds.exact.world import ExactWorld, Weights

CELLS = 1 << 24  # entries of the agreement table held at once


class Solutions(ExactWorld):
    """The uniform law over a listed set of sequences."""

    draws = 1
    uniform = True

    def __init__(self, table: Int[np.ndarray, "solutions length"], vocab_size: int) -> None:
        self.table = table
        self.vocab_size, self.length = vocab_size, table.shape[1]

    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        return self.table[(u[:, 0] * len(self.table)).astype(np.int64)]

    def log_prob(self, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        """−log of the number of solutions, or -inf."""
        self.check(tokens)
        possible = self._solved(tokens)
        each = torch.full(possible.shape, -self.entropy(), dtype=torch.float64)
        return torch.where(possible, each.to(tokens.device), -torch.inf)

    def _solved(self, tokens: Int[Tensor, "count length"]) -> Tensor:
        return self.marginals(tokens).sum((1, 2)) > 0

    def entropy(self) -> float:
        """log of the number of solutions, in nats."""
        return math.log(len(self.table))

    def support(self) -> tuple[Int64[Tensor, "n length"], Float64[Tensor, " n"]]:
        """All solutions, with their log-probabilities."""
        tokens = torch.from_numpy(self.table.astype(np.int64))
        return tokens, torch.full((len(tokens),), -self.entropy(), dtype=torch.float64)

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """How many solutions that agree have each value at each position."""
        table = self._one_hot(tokens.device)
        parts = [self._count(table, some) for some in tokens.split(max(1, CELLS // len(table)))]
        blank = table.new_zeros((0, self.length, self.vocab_size))
        return torch.cat([blank, *parts]).to(torch.float64)

    def _count(self, table: Tensor, tokens: Tensor) -> Tensor:
        revealed = tokens != self.vocab_size
        canvas = torch.nn.functional.one_hot(tokens.to(torch.int64), self.vocab_size + 1)[..., :-1]
        agree = canvas.flatten(1).to(table) @ table.T == revealed.sum(1, keepdim=True)
        return (agree.to(table) @ table).view(len(tokens), self.length, self.vocab_size)

    def _one_hot(self, device: torch.device) -> Float[Tensor, "solutions cells"]:
        return _one_hot(self, str(device))


@lru_cache(maxsize=8)
def _one_hot(world: Solutions, device: str) -> Float[Tensor, "solutions cells"]:
    """The table as zeros and ones; float32 holds counts up to 2^24 exactly."""
    rows = torch.from_numpy(world.table.astype(np.int64)).to(device)
    return torch.nn.functional.one_hot(rows, world.vocab_size).flatten(1).to(torch.float32)
