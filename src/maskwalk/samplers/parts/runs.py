"""Maximal runs of masked positions: what bisection recurses into."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def runs(
    masked: Bool[Tensor, "batch length"],
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """(start, size) of the maximal masked run each position lies in; size 0 where not masked."""
    length = masked.shape[1]
    place = torch.arange(length, device=masked.device).expand(masked.shape)
    # The run begins after the last revealed position before it, and ends before the next one.
    before = torch.where(masked, -1, place).cummax(1).values
    after = torch.where(masked, length, place).flip(1).cummin(1).values.flip(1)
    return torch.where(masked, before + 1, place), torch.where(masked, after - before - 1, 0)
