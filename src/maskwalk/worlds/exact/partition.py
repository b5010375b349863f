"""The general oracle: differentiate the logarithm of the partition function.

A world that can compute

    log Z(w) = log Σ_x weight(x) ∏_i w_i(x_i)

for unary weights w has all its conditionals at once. With w_i(v) = 1 at masked positions and, at
revealed ones, 1 on the token and 0 off it,

    w_i(v) · ∂ log Z / ∂ w_i(v) = p(x_i = v | revealed)

[Darwiche, "A differential approach to inference in Bayesian networks", 2003; for a grammar this is
inside–outside]. In w rather than log w the zeros are plain numbers to differentiate at.
"""

from abc import abstractmethod

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.streams import inverse_cdf
from maskwalk.worlds.exact.world import ExactWorld, Weights


class Partition(ExactWorld):
    """A world by its partition function alone; a direct formula is faster, never more exact.

    A subclass sets `vocab_size` and `length` and writes `log_partition` and `show`; the rest
    follows: samples are drawn token by token from the oracle. Sums must not mix rows of a batch.
    """

    @property
    def draws(self) -> int:  # type: ignore[override]
        """One uniform a token."""
        return self.length

    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        """From left to right, each token by its conditional."""
        uniforms = torch.from_numpy(np.ascontiguousarray(u))
        tokens = torch.full(u.shape, self.vocab_size)
        if len(u) and not float(self.log_partition(self._unary(tokens[:1]))) > -torch.inf:
            raise MaskwalkError("No sequence of this length is possible in this world.")
        for t in range(self.length):
            tokens[:, t] = inverse_cdf(self.marginals(tokens)[:, t].log(), uniforms[:, t])
        return tokens.numpy()

    @abstractmethod
    def log_partition(self, unary: Weights) -> Float64[Tensor, " batch"]:
        """log Z of unary weights ≥ 0, in differentiable torch; -inf where nothing is possible."""

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """All conditionals by one backward pass."""
        unary = self._unary(tokens).requires_grad_()
        with torch.enable_grad():
            log_total = self.log_partition(unary)
            (slope,) = torch.autograd.grad(log_total.sum(), unary)
        possible = (log_total.detach() > -torch.inf)[:, None, None]
        return torch.where(possible, slope * unary.detach(), 0.0)

    def _unary(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """One where a token may stand: any on the mask, itself elsewhere."""
        values = torch.arange(self.vocab_size, device=tokens.device)
        free = (tokens == self.vocab_size)[..., None]
        return (free | (tokens[..., None] == values)).to(torch.float64)

    def log_prob(self, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        """log of the sequence's weight over the sum of all."""
        self.check(tokens)
        blank = torch.full_like(tokens[:1], self.vocab_size)
        return self.log_partition(self._unary(tokens)) - self.log_partition(self._unary(blank))
