"""Small tensors on a CPU: numpy's view of them, whose operations cost a fraction of torch's calls.

The checks and counts of a decoding round are a dozen comparisons of a canvas. At batch 1 calling
torch for each is most of the round. Written in operators that both know (`&`, `!=`, `.any(1)`),
they run on either.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

Made = TypeVar("Made")

SMALL = 1 << 15  # numbers; beyond, the work outweighs the calls
LOOKED_AT = 4  # times as many, of which the largest of each row is wanted
PICKED = 1 << 15  # times as many, of which one of each row is wanted
MANY_ROWS = 1024  # rows of a table whose beginnings are kept
FEW_THREADS = 4  # with more, torch's argmax of a large table is the faster one


KINDS = frozenset((torch.bool, torch.int64, torch.float32, torch.float64))


class once(Generic[Made]):
    """`cached_property` without its lock, which up to Python 3.11 costs more than a small array."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, thing: Any, owner: type | None = None) -> Made:
        made: Made = self.make(thing)
        thing.__dict__[self.name] = made
        return made


def small(tensor: Tensor, times: int = 1) -> Any:
    """The same memory as a numpy array, if that is cheaper; the tensor itself if not. `times`: so
    much larger it may be, where little is done with it."""
    if tensor.is_cpu and tensor.numel() <= SMALL * times and tensor.dtype in KINDS:
        return (tensor.detach() if tensor.requires_grad else tensor).numpy()
    return tensor


def large(numbers: Any) -> Tensor:
    """What `small` gave, or what was made of it, as a tensor again."""
    return torch.from_numpy(numbers) if isinstance(numbers, np.ndarray) else numbers


def count(places: Any) -> int:
    """How many are true."""
    return int(np.count_nonzero(places) if isinstance(places, np.ndarray) else places.sum())


def some(places: Any) -> bool:
    """Whether any is true; there is at least one place."""
    if isinstance(places, np.ndarray):
        return bool(places.item(places.argmax()))
    return bool(places.any() if places.numel() > 1 else places)


def any_of_each(places: Any) -> Any:
    """Whether any is true, of each row; there is at least one place."""
    if isinstance(places, np.ndarray) and len(places) == 1:  # a third of what `any` takes
        return places.take(places.argmax(1))
    return places.any(1)


def count_of_each(places: Any) -> Any:
    """How many are true, of each row; of one row, a number."""
    if isinstance(places, np.ndarray) and len(places) == 1:
        return np.count_nonzero(places)
    return places.sum(1)


def larger(numbers: Any, others: Any) -> Any:
    """The larger ones of two rows of numbers, in the form of the first."""
    if isinstance(numbers, np.ndarray):
        return np.maximum(numbers, small(others) if isinstance(others, Tensor) else others)
    return torch.maximum(numbers, large(others))


def true_places(kept: Any) -> Int[Tensor, " n"]:
    """Which ones are true, counted in row-major order."""
    if isinstance(kept, np.ndarray):
        return torch.from_numpy(kept.ravel().nonzero()[0])
    index: Tensor = kept.flatten().nonzero()[:, 0]
    return index


def written(numbers: np.ndarray, places: np.ndarray, values: Tensor, kept: Tensor) -> np.ndarray:
    """A copy of `numbers` in which the `values` (packed) for `places` stand where they are kept."""
    new, some = numbers.copy(), kept.numpy() & places
    new[some] = values.numpy()[some[places]]
    return new


def of_each(table: Tensor, columns: Int[Tensor, " rows"]) -> Tensor:
    """The number of every row that stands in its column."""
    numbers, places = small(table, PICKED), small(columns)
    if isinstance(numbers, np.ndarray) and isinstance(places, np.ndarray):
        return torch.from_numpy(numbers[np.arange(len(numbers)), places])
    return table.gather(1, columns.unsqueeze(1)).squeeze(1)


@lru_cache(maxsize=4)
def _firsts(columns: int) -> np.ndarray:
    firsts: np.ndarray = np.arange(0, MANY_ROWS * columns, columns)
    firsts.setflags(write=False)
    return firsts


def first_of_each(rows: int, columns: int) -> np.ndarray:
    """Where every row of a table begins, counted in row-major order."""
    if rows > MANY_ROWS:
        return np.arange(0, rows * columns, columns)
    return _firsts(columns)[:rows]


def first_largest(table: Tensor) -> Int[Tensor, " rows"]:
    """argmax of every row, the first of equals: numpy's is vectorised, torch's has threads."""
    numbers = small(table)
    if numbers is table and table.is_cpu and table.dtype in KINDS and not table.requires_grad:
        numbers = table.numpy() if torch.get_num_threads() <= FEW_THREADS else table
    return large(numbers.argmax(-1))
