"""Small tensors on a CPU: numpy's view of them, whose operations cost a fraction of torch's calls.

The checks and counts of a decoding round are a dozen comparisons of a canvas. At batch 1 calling
torch for each is most of the round. Written in operators that both know (`&`, `!=`, `.any(1)`),
they run on either.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

SMALL = 1 << 15  # numbers; beyond, the work outweighs the calls
FEW_THREADS = 4  # with more, torch's argmax of a large table is the faster one


KINDS = frozenset((torch.bool, torch.int64, torch.float32, torch.float64))


def small(tensor: Tensor) -> Any:
    """The same memory as a numpy array, if that is cheaper; the tensor itself if not."""
    if tensor.is_cpu and tensor.numel() <= SMALL and tensor.dtype in KINDS:
        return (tensor.detach() if tensor.requires_grad else tensor).numpy()
    return tensor


def large(numbers: Any) -> Tensor:
    """What `small` gave, or what was made of it, as a tensor again."""
    return torch.from_numpy(numbers) if isinstance(numbers, np.ndarray) else numbers


def count(places: Any) -> int:
    """How many are true."""
    return int(np.count_nonzero(places) if isinstance(places, np.ndarray) else places.sum())


def true_places(kept: Any) -> Int[Tensor, " n"]:
    """Which ones are true, of one row of them."""
    if isinstance(kept, np.ndarray):
        return torch.from_numpy(kept.nonzero()[0])
    index: Tensor = kept.nonzero()[:, 0]
    return index


def of_each(table: Tensor, columns: Int[Tensor, " rows"]) -> Tensor:
    """The number of every row that stands in its column."""
    numbers, places = small(table), small(columns)
    if isinstance(numbers, np.ndarray) and isinstance(places, np.ndarray):
        return torch.from_numpy(numbers[np.arange(len(numbers)), places])
    return table.gather(1, columns.unsqueeze(1)).squeeze(1)


def first_largest(table: Tensor) -> Int[Tensor, " rows"]:
    """argmax of every row, the first of equals: numpy's is vectorised, torch's has threads."""
    numbers = small(table)
    plain = table.is_cpu and table.dtype in KINDS and not table.requires_grad
    if plain and torch.get_num_threads() <= FEW_THREADS:
        numbers = table.numpy()
    return large(numbers.argmax(-1))
