"""Dropout without a generator: whether an element is kept is a hash of where and when it is.

Element i of residual branch b is dropped if hash(i + key_b) falls below the rate's threshold; the
hash is the two-multiplication mixer `lowbias32` [Wellons, "Prospecting for hash functions", 2018],
and whoever trains supplies a fresh 32-bit key for every model, step and branch. So nothing is
stored between forward and backward pass, a resumed run drops the same elements, and a model drops
the same ones alone and in a batch of models.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


def mixed(x: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """32 well-mixed bits of each int32, as int32."""
    # `>>` copies the sign bit, so each shift is followed by the mask that makes it logical.
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * 0x7FEB352D
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * (0x846CA68B - (1 << 32))
    return x ^ ((x >> 16) & 0xFFFF)


@dataclass(frozen=True)
class Dropout:
    """The dropout of one step: keys and rates per model, and where this process's rows begin."""

    keys: Int[Tensor, "models branches"]  # int32
    threshold: Int[Tensor, " models"]  # int32: a hash below it drops
    scale: Float[Tensor, " models"]
    first: int = 0  # number of the first sequence in the whole batch

    @staticmethod
    def of_rates(rates: list[float], device: torch.device) -> tuple[Tensor, Tensor]:
        """(threshold, scale) of each model's rate; the hash is uniform on [-2^31, 2^31)."""
        rate = torch.tensor(rates, dtype=torch.float64)
        threshold = (rate * 2.0**32 - 2.0**31).to(torch.int32)
        return threshold.to(device), (1 / (1 - rate)).to(device, torch.float32)

    def __call__(
        self, x: Float[Tensor, "models batch length hidden"], branch: int
    ) -> Float[Tensor, "models batch length hidden"]:
        """x with elements dropped and the rest scaled up."""
        shape = x.shape[1:]
        start = self.first * shape[1] * shape[2]
        element = torch.arange(shape.numel(), dtype=torch.int32, device=x.device) + start
        bits = mixed(element.view(shape) + self.keys[:, branch, None, None, None])
        threshold, scale = (t[:, None, None, None] for t in (self.threshold, self.scale))
        return torch.where(bits < threshold, 0.0, x * scale)
