"""Counter-based random streams.

There is no generator state anywhere. A number is a pure function of (seed, sequence id, position,
round, purpose), computed by Philox-4x32-10 [Salmon et al., SC 2011] on integer tensors, so the same
on every device; a sequence's result therefore does not depend on the batch it was in, on the other
sequences, on how many workers ran, or on a resume.

A value is drawn by inverse CDF from one uniform u in [0, 1): the first one with positive
probability whose cumulative probability exceeds u. One of probability zero is never returned.
"""

from copy import copy
from enum import IntEnum
from operator import index
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, shown
from maskwalk.kernels.rows import by_rows, probabilities
from maskwalk.kernels.small import large, small

WORD = 0xFFFFFFFF
LIMIT = 1 << 16  # positions, rounds' purposes and blocks of four tokens each fit 16 bits
BEGIN = 1 << 9  # numbers that cost about as much as asking for one: so many rounds come first
AHEAD = 1 << 13  # numbers of coming rounds that are computed at once, on a CPU
SMALL = 1 << 11  # canvases of more places than this get each round's numbers as they are asked for


class Purpose(IntEnum):
    """What a random number is for; different purposes never share numbers."""

    GRAPH = 0
    WALK = 1
    PROMPT = 2
    CHOICE = 3
    TIE = 4
    TOKEN = 5
    ACCEPT = 6
    TRAIN = 7
    METRIC = 8
    NOISE = 9
    REDRAW = 10


def checked_seed(seed: Any) -> int:
    """A seed of at most 64 bits, or a sentence: a larger one would silently be a smaller one."""
    try:
        number = index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**64:
        raise MaskwalkError(f"A seed is a whole number from 0 to 2^64 - 1, not {shown(seed)}.")
    return number


def philox(counter: list[Tensor], key: tuple[int, int]) -> list[Tensor]:
    """Philox-4x32-10: four int64 tensors holding 32-bit words in, four out."""
    if counter[0].is_cuda and not torch.compiler.is_compiling():  # compiled code fuses this itself
        from maskwalk.kernels.streams import philox as fused

        return fused(counter, key)
    if counter[0].device.type == "cpu" and not torch.compiler.is_compiling():
        from maskwalk.kernels.philox import philox as by_numpy

        return by_numpy(counter, key)
    return by_tensors(counter, key)


def by_tensors(counter: list[Tensor], key: tuple[int, int]) -> list[Tensor]:
    """Philox in plain operations, for a compiler to fuse."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        # A 32x32-bit product may wrap int64; its 64 bits are right all the same.
        high = c0 * 0xD2511F53
        low = c2 * 0xCD9E8D57
        c0 = ((low >> 32) & WORD) ^ c1 ^ k0
        c2 = ((high >> 32) & WORD) ^ c3 ^ k1
        c1, c3 = low & WORD, high & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return [c0, c1, c2, c3]


def _double(high: Tensor, low: Tensor) -> Tensor:
    """Two 32-bit words to a float64 in [0, 1) on the 2^-53 grid."""
    return ((high >> 5) * (1 << 26) + (low >> 6)).to(torch.float64) * 2.0**-53


class Streams:
    """The random numbers of a batch of sequences, addressed, never consumed."""

    def __init__(self, seed: int, ids: Int[Tensor, " batch"] | int, device: str = "cpu") -> None:
        if isinstance(ids, int):
            ids = torch.arange(ids, device=device)
        if not isinstance(ids, Tensor) or ids.ndim != 1 or ids.dtype.is_floating_point:
            raise MaskwalkError(f"Stream ids are a tensor of whole numbers, not {shown(ids)}.")
        self.seed, self.ids = checked_seed(seed), ids.to(torch.int64)
        self.key = (self.seed & WORD, (self.seed >> 32) & WORD)
        self._span = 0  # positions of the canvas whose coming rounds are computed ahead; 0: none
        self._tables: dict[int, tuple[int, Tensor]] = {}  # by purpose: first round, numbers

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: seed {self.seed}, {len(self.ids)} sequences>"

    def select(self, rows: Tensor) -> "Streams":
        """The streams of some of the rows (an index or a boolean mask)."""
        part = Streams(self.seed, self.ids[rows])
        part._span = self._span
        part._tables = {name: (first, t[:, rows]) for name, (first, t) in self._tables.items()}
        return part

    def _ahead(self, length: int) -> "Streams":
        """The same streams for a decoding of `length` positions, which asks round after round."""
        same = copy(self)
        small = self.ids.device.type == "cpu" and len(self.ids) * length <= SMALL
        same._span, same._tables = length if small else 0, {}
        return same

    def _asking(self) -> None:
        """Somebody asks for numbers; `replay` listens here."""

    def _words(
        self,
        rows: Tensor,
        positions: Tensor,
        purpose: int,
        round: Tensor | int,
        block: Tensor | int,
    ) -> list[Tensor]:
        ids = self.ids[rows]
        c1 = (ids >> 32) & 0xFFFF | (int(purpose) << 16)
        c2 = positions | (block << 16)
        c3 = round if isinstance(round, Tensor) else torch.full_like(ids, round)
        return philox(list(torch.broadcast_tensors(ids & WORD, c1, c2, c3)), self.key)

    def _grid(self, purpose: int, rounds: Tensor | int, length: int) -> Tensor:
        """A uniform for every position of every sequence, in one round or in several."""
        rows = torch.arange(len(self.ids), device=self.ids.device)[:, None]
        positions = torch.arange(length, device=self.ids.device)[None, :]
        words = self._words(rows, positions, purpose, rounds, 0)
        return _double(words[0], words[1])

    def _round(self, purpose: int, round: int) -> Float64[Tensor, "batch length"]:
        """One round's numbers, out of a table of coming rounds: twice as many as the last had."""
        first, table = self._tables.get(purpose, (round, None))
        if table is None or not first <= round < first + len(table):
            follows = table is not None and round == first + len(table)
            most = max(1, AHEAD // max(1, len(self.ids) * self._span))
            few = max(1, BEGIN // max(1, len(self.ids) * self._span))
            count = min(most, 2 * len(table)) if follows and table is not None else few
            rounds = torch.arange(round, round + count)[:, None, None]
            first, table = round, self._grid(purpose, rounds, self._span)
            self._tables[purpose] = first, table
        return table[round - first]

    def uniform(self, purpose: Purpose, round: int, length: int) -> Float64[Tensor, "batch length"]:
        """One uniform for every position of every sequence."""
        self._asking()
        if self.ids.is_cuda:
            from maskwalk.kernels.streams import uniform

            return uniform(self.ids, self.key, int(purpose), round, length)
        if length == self._span:
            return self._round(purpose, round).clone()
        return self._grid(purpose, round, length)

    def uniform_at(
        self, purpose: Purpose, round: int, rows: Int[Tensor, " n"], positions: Int[Tensor, " n"]
    ) -> Float64[Tensor, " n"]:
        """The same numbers as `uniform`, only at the places named."""
        self._asking()
        if self.ids.is_cuda:
            from maskwalk.kernels.streams import uniform

            return uniform(self.ids, self.key, int(purpose), round, 0, (rows, positions))
        if self._span:
            try:
                numbers = small(self._round(purpose, round))
                return large(numbers[small(rows), small(positions)])
            except IndexError:  # a place beyond the canvas: computed like any other
                pass
        words = self._words(rows, positions, purpose, round, 0)
        return _double(words[0], words[1])

    def single_at(
        self,
        purpose: Purpose,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
        width: int,
    ) -> Float[Tensor, "n width"]:
        """`width` float32 uniforms (24 bits) at every place named, one per token."""
        self._asking()
        blocks = torch.arange(-(-width // 4), device=self.ids.device)
        words = self._words(rows[:, None], positions[:, None], purpose, round, blocks[None, :])
        lanes = torch.stack([w >> 8 for w in words], dim=-1).flatten(1)[:, :width]
        return lanes.to(torch.float32) * 2.0**-24


class Moved(Streams):
    """The same streams for sequences that stand further back on their canvas, row by row: position
    p has the numbers of p − back."""

    def __init__(self, streams: Streams, back: Int[Tensor, " batch"]) -> None:
        super().__init__(streams.seed, streams.ids)
        self.back = back.to(streams.ids.device)

    def select(self, rows: Tensor) -> "Moved":
        """The streams of some of the rows."""
        part = Moved(super().select(rows), self.back[rows])
        part._span = self._span
        return part

    def _places(self, rows: Tensor, positions: Tensor) -> Tensor:
        return (positions - self.back[rows]).clamp(min=0)

    def uniform(self, purpose: Purpose, round: int, length: int) -> Float64[Tensor, "batch length"]:
        """One uniform for every position of every sequence."""
        rows = torch.arange(len(self.ids), device=self.ids.device)[:, None]
        places = self._places(rows, torch.arange(length, device=self.ids.device)[None, :])
        return super().uniform(purpose, round, length).gather(1, places)

    def uniform_at(
        self, purpose: Purpose, round: int, rows: Int[Tensor, " n"], positions: Int[Tensor, " n"]
    ) -> Float64[Tensor, " n"]:
        """The same numbers as `uniform`, only at the places named."""
        return super().uniform_at(purpose, round, rows, self._places(rows, positions))

    def single_at(
        self,
        purpose: Purpose,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
        width: int,
    ) -> Float[Tensor, "n width"]:
        """`width` float32 uniforms at every place named."""
        return super().single_at(purpose, round, rows, self._places(rows, positions), width)


def block_uniforms(
    seed: int, purpose: Purpose, first: int, count: int, width: int, stream: int = 0
) -> np.ndarray:
    """Rows first..first+count-1 of an endless table of uniforms, `width` a row, by numpy's Philox.

    The bulk source (graphs, walks): each row is a pure function of (seed, purpose, stream, row).
    """
    bits, padded = _block(seed, purpose, first, width, stream)
    return np.random.Generator(bits).random((count, padded))[:, :width]  # upper 53 bits of a word


def block_words(
    seed: int, purpose: Purpose, first: int, count: int, width: int, stream: int = 0
) -> np.ndarray:
    """The 64-bit words that `block_uniforms` makes its numbers of: their upper 53 bits."""
    bits, padded = _block(seed, purpose, first, width, stream)
    return bits.random_raw(count * padded).reshape(count, padded)[:, :width]


def _block(
    seed: int, purpose: Purpose, first: int, width: int, stream: int
) -> tuple[np.random.Philox, int]:
    """numpy's Philox where row `first` begins, and the numbers of a row."""
    seed = checked_seed(seed)
    padded = -(-width // 4) * 4  # one Philox-4x64 counter yields four words
    key = np.array([seed & (2**64 - 1), (int(purpose) << 32) | stream], dtype=np.uint64)
    return np.random.Philox(key=key, counter=first * (padded // 4)), padded


def inverse_cdf(log_probs: Float[Tensor, "n vocab"], u: Float64[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The first token of positive probability whose cumulative probability exceeds u."""
    return by_rows(_inverse_cdf, log_probs, u)


def _inverse_cdf(
    log_probs: Float[Tensor, "n vocab"], u: Float64[Tensor, " n"]
) -> Int[Tensor, " n"]:
    probs = probabilities(log_probs)
    cdf = probs.cumsum(-1)
    if cdf.device.type == "cpu":  # its sums never fall, so what exceeds u can be searched for
        found = torch.searchsorted(cdf, u.unsqueeze(1) * cdf[:, -1:], right=True).squeeze(1)
        if bool((small(found) < cdf.shape[1]).all()):
            return found
    return _first_beyond(probs, cdf, u)


def _first_beyond(
    probs: Float64[Tensor, "n vocab"], cdf: Float64[Tensor, "n vocab"], u: Float64[Tensor, " n"]
) -> Int[Tensor, " n"]:
    """The first token beyond u, place by place; the last possible one where none is."""
    # `probs > 0` guards against parallel scans whose rounding is not monotone (CUDA).
    beyond = (cdf > u[:, None] * cdf[:, -1:]) & (probs > 0)
    first = beyond.to(torch.uint8).argmax(-1)
    last = probs.shape[1] - 1 - (probs > 0).flip(-1).to(torch.uint8).argmax(-1)
    return torch.where(beyond.any(-1), first, last)
