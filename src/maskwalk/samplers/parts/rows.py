"""Some of the rows of a batch, written back into the whole."""

from jaxtyping import Bool
from torch import Tensor


def written(old: Tensor, rows: Bool[Tensor, " batch"], new: Tensor) -> Tensor:
    """`new` in some of the rows; a table that has grown wider meanwhile is widened in the rest."""
    table = old.expand(len(old), *new.shape[1:]).clone()
    table[rows] = new
    return table
