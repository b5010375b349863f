"""Which pairs of nodes are edges, each with probability p independently of the others.

Up to TOSSED pairs every one has a coin of its own: a uniform from the table at (row, column), and
the pair is in if it is below p. Beyond, where most coins would be tossed for nothing, the same law
is drawn from the other end: how many pairs are in is binomial,

    M ~ Bin(N, p) = Σ over blocks of 2^16 pairs, each by inverse CDF from one uniform,

and given M they are the first M different ones of an endless list of uniform pairs, so any M of the
N pairs are equally likely. The time is that of M, not of N. Either way a larger p with the same
seed only adds pairs, and numbers are only compared, added or multiplied.
"""

from itertools import accumulate
from math import ceil

import numpy as np
from jaxtyping import Bool, Float64, Int64

from maskwalk.streams import Purpose, block_uniforms, block_words

TOSSED = 20_000**2  # coins: a second or two
BLOCK = 2**16  # pairs that one binomial number is drawn for
DENSE = 0.009  # above, (1 - p)^BLOCK is too small for float64, and a coin for every pair no waste
AT_ONCE = 2**20  # uniforms held at a time


def by_coins(pairs: float, p: float) -> bool:
    """Whether every one of so many pairs has a coin."""
    return pairs <= TOSSED or p > DENSE


def coins(
    seed: int, stream: int, nodes: int, p: float, ordered: bool = True
) -> Int64[np.ndarray, "pairs 2"]:
    """Ordered pairs (i, j), or those with i < j, each in with probability p: a coin for each."""
    if p <= 0:
        return np.zeros((0, 2), dtype=np.int64)
    if not ordered and nodes > 4096:  # half of the table is never looked at
        rows = [_row_beyond(seed, stream, nodes, p, i) for i in range(nodes - 1)]
        source = np.repeat(np.arange(nodes - 1), [len(row) for row in rows])
        return np.stack([source, np.concatenate(rows)], axis=1)
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    rows_at_once = max(1, AT_ONCE // nodes)
    for first in range(0, nodes, rows_at_once):
        count = min(rows_at_once, nodes - first)
        heads = _below(block_words(seed, Purpose.GRAPH, first, count, nodes, stream), p)
        row, column = np.nonzero(heads)
        pairs.append(np.stack([row + first, column], axis=1))
    both = np.concatenate(pairs)
    return both if ordered else both[both[:, 0] < both[:, 1]]


def _row_beyond(
    seed: int, stream: int, nodes: int, p: float, row: int
) -> Int64[np.ndarray, " heads"]:
    """The columns j > row whose coin in this row of the table is below p."""
    width, skipped = -(-nodes // 4), (row + 1) // 4  # in counters of four uniforms
    count = width - skipped
    words = block_words(seed, Purpose.GRAPH, row * width + skipped, count, 4, stream).reshape(-1)
    columns = np.flatnonzero(_below(words, p)) + 4 * skipped
    return columns[(columns > row) & (columns < nodes)]


def _below(words: np.ndarray, p: float) -> Bool[np.ndarray, "..."]:
    """Where the uniform of a word is below p, without making it: its upper 53 bits decide."""
    bound = ceil(p * 2.0**53) << 11
    return words < np.uint64(bound) if bound < 2**64 else np.ones(words.shape, dtype=bool)


def listed(
    seed: int, streams: tuple[int, int], nodes: int, p: float, ordered: bool = True
) -> Int64[np.ndarray, "pairs 2"]:
    """Pairs of different nodes, ordered or with i < j, each in with probability p: no coins.

    The two streams are those of the number of pairs and of the pairs.
    """
    pairs = nodes * (nodes - 1) // (1 if ordered else 2)
    return _first_different(seed, streams[1], nodes, _binomial(seed, streams[0], pairs, p), ordered)


def _binomial(seed: int, stream: int, trials: int, p: float) -> int:
    """How many of so many trials succeed, by inverse CDF in every block of them."""
    blocks, rest = divmod(trials, BLOCK)
    whole, part = _binomial_cdf(BLOCK, p), _binomial_cdf(rest, p)
    total = 0
    for first in range(0, blocks, AT_ONCE):  # AT_ONCE is a multiple of the four in a row
        u = _line(seed, stream, first, min(AT_ONCE, blocks - first))
        total += int(np.searchsorted(whole, u, side="right").sum())
    last = _line(seed, stream, -(-blocks // 4) * 4, 1)
    return total + int(np.searchsorted(part, last, side="right")[0])


def _line(seed: int, stream: int, first: int, count: int) -> Float64[np.ndarray, " count"]:
    """Uniforms first, first + 1, … of one endless line; `first` is a multiple of 4."""
    table = block_uniforms(seed, Purpose.GRAPH, first // 4, -(-count // 4), 4, stream)
    return table.reshape(-1)[:count]


def _binomial_cdf(trials: int, p: float) -> Float64[np.ndarray, " counts"]:
    """P(at most k successes) for k = 0, 1, … below `trials`, as far as it is told from 1."""
    chance = _power(1.0 - p, trials)
    odds, chances = p / (1.0 - p), []
    for k in range(trials):
        chances.append(chance)
        chance *= (trials - k) / (k + 1) * odds
        if k > trials * p and chance < 1e-20:
            break
    return np.array(list(accumulate(chances)))


def _power(base: float, exponent: int) -> float:
    """A power by products alone: the same on every machine."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base, exponent = base * base, exponent >> 1
    return result


def _first_different(
    seed: int, stream: int, nodes: int, count: int, ordered: bool
) -> Int64[np.ndarray, "pairs 2"]:
    """The first `count` different pairs of one endless list of uniform ones."""
    drawn = count + count // 64 + 64
    while True:
        ends = np.floor(_line(seed, stream, 0, 2 * drawn) * nodes).astype(np.int64).reshape(-1, 2)
        ends = ends[ends[:, 0] != ends[:, 1]]
        if not ordered:
            ends.sort(axis=1)
        ends = ends[_first_seen(ends[:, 0] * nodes + ends[:, 1])]
        if len(ends) >= count:
            found: np.ndarray = ends[:count]
            return found
        drawn += drawn // 8


def _first_seen(keys: Int64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Where a number stands for the first time; quick where few stand twice."""
    ordered = np.sort(keys)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    new = np.ones(len(keys), dtype=bool)
    if len(twice):
        place = np.minimum(np.searchsorted(twice, keys), len(twice) - 1)
        (repeated,) = np.nonzero(twice[place] == keys)
        _, first = np.unique(keys[repeated], return_index=True)
        new[repeated] = False
        new[repeated[first]] = True
    return new
