"""Tables too large to copy: row-wise work a few rows at a time, in the memory that is there.

A language model's marginals at 8 × 1,024 masked positions over 50,258 tokens are 1.65 GB in
float32. Scoring or drawing from them in float64 all at once would hold several such tables; a row
never looks at its neighbours, so a slice at a time gives the same numbers.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from maskwalk.kernels.small import small, true_places

SLICE = 1 << 20  # numbers worked on at a time: 8 MB in float64
ACCELERATOR_SLICE = 1 << 24  # fewer launches; the paper's walks still go through at once
LARGE = 1 << 24  # numbers: a copy of more rows than this is avoided


def slices(table: Tensor) -> Iterator[slice]:
    """Consecutive rows of a table, a slice of bounded size at a time."""
    rows, width = table.shape
    limit = SLICE if table.device.type == "cpu" else ACCELERATOR_SLICE
    step = max(1, limit // max(1, width))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def probabilities(log_probs: Float[Tensor, "rows width"]) -> Float64[Tensor, "rows width"]:
    """exp in float64: in the memory of the float64 copy, where one has to be made."""
    wide = log_probs.to(torch.float64)
    return wide.exp() if wide is log_probs or wide.requires_grad else wide.exp_()


def log_over(probs: Float64[Tensor, "rows width"], out: Tensor) -> None:
    """log into `out`; `probs` are written over. On a CPU zeros are left out: the library's log
    takes four times as long for them."""
    if not probs.is_cpu:
        torch.log(probs, out=out)
        return
    numbers = probs.numpy()
    zero = numbers == 0
    np.copyto(numbers, 1.0, where=zero)
    torch.log(probs, out=out)
    np.copyto(out.numpy(), -np.inf, where=zero)


def by_rows(
    function: Callable[..., Tensor], table: Float[Tensor, "rows width"], *others: Tensor
) -> Tensor:
    """`function(table, *others)` for a function that treats every row by itself."""
    if table.numel() <= SLICE:
        return function(table, *others)
    parts = list(slices(table))
    if len(parts) == 1:
        return function(table, *others)
    first = function(table[parts[0]], *(x[parts[0]] for x in others))
    # One result to write into: many small ones, kept, would lie in the gaps that slices leave in
    # memory, and no later slice would fit there.
    result = first.new_empty((len(table), *first.shape[1:]))
    result[parts[0]] = first
    for part in parts[1:]:
        result[part] = function(table[part], *(x[part] for x in others))
    return result


def keep_rows(
    table: Float[Tensor, "rows width"], kept: Bool[Tensor, " rows"]
) -> Float[Tensor, "n width"]:
    """The rows kept: a copy if that is small, else moved to the front of the table's own memory."""
    index = true_places(small(kept))
    if index.shape[0] == table.shape[0]:
        return table
    if index.shape[0] * table.shape[1] <= LARGE:
        return table.index_select(0, index)
    # A kept row never moves down, so going forward no row is overwritten before it is read.
    for part in slices(table[: len(index)]):
        table[part] = table[index[part]]
    return table[: len(index)]
