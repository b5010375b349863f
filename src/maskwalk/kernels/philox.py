"""Philox-4x32-10 on a CPU: few calls for few numbers, and large ones a piece at a time.

The words c0, c2 and c1, c3 of the counter lie as the two rows of two tables, so that a round is
five operations of numpy instead of fourteen of torch, whose calls are dearer. A piece stays in the
processor's cache through all ten rounds.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
FACTORS = np.array([[0xD2511F53], [0xCD9E8D57]], dtype=np.uint64)
PIECE = 1 << 12  # counters: three tables of 64 KB


@lru_cache(maxsize=64)
def _keys(key: tuple[int, int]) -> list[np.ndarray]:
    """The two key words of every round."""
    return [
        np.array(
            [[(key[0] + i * 0x9E3779B9) & 0xFFFFFFFF], [(key[1] + i * 0xBB67AE85) & 0xFFFFFFFF]],
            dtype=np.uint64,
        )
        for i in range(10)
    ]


def _piece(even: np.ndarray, odd: np.ndarray, key: tuple[int, int]) -> None:
    """Ten rounds in place: `even` holds c0 and c2, `odd` c1 and c3."""
    product = np.empty_like(even)
    swapped = product[::-1]
    for words in _keys(key):
        np.multiply(even, FACTORS, out=product)
        np.bitwise_xor(odd, words, out=even)
        np.bitwise_and(swapped, WORD, out=odd)
        np.right_shift(product, HALF, out=product)
        np.bitwise_xor(even, swapped, out=even)


def philox(counter: list[Tensor], key: tuple[int, int]) -> list[Tensor]:
    """Four int64 tensors of one shape holding 32-bit words in, four out."""
    words = np.empty((2, 2, counter[0].numel()), dtype=np.uint64)  # odd or even, which, counters
    for number, c in enumerate(counter):
        words[number % 2, number // 2] = c.reshape(-1).numpy().view(np.uint64)
    for begin in range(0, words.shape[2], PIECE):
        part = words[:, :, begin : begin + PIECE]
        _piece(part[0], part[1], key)
    table = torch.from_numpy(words.view(np.int64))
    shape = counter[0].shape
    return [table[number % 2, number // 2].view(shape) for number in range(4)]
