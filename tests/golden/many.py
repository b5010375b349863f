"""Toy networks for golden cases: fixed random functions of the canvas with distinct marginals.

A batch holds many networks: the last position of a canvas is given and says which one answers. A
reference is written in plain Python from a rule's formula, asks about one canvas at a time, and is
compared with `decode` at temperature 0: tokens, the round of every position, calls.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp

import numpy as np
import torch
from torch import Tensor

from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import Draw
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams

Line = list[int]  # the tokens of a canvas
Row = list[float]  # the log-marginal of a position
Found = tuple[Line, list[int], int]  # tokens, the round of every position, calls


@dataclass
class Toys:
    """`count` networks of two random layers over `words` tokens, on `length` positions and one
    more that names the network; `moving` is how much the canvas changes the marginals."""

    length: int
    count: int = 50
    words: int = 4
    moving: float = 1.5
    score_grid: float = 1e-9
    vocab_size: int = field(init=False)
    mask_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.vocab_size = self.mask_id = max(self.count, self.words)
        rng = np.random.default_rng(self.length)
        hidden, (n, size, words) = 24, (self.count, self.length, self.words)
        self.first = torch.tensor(rng.normal(size=(n, size, words + 1, hidden)) / size**0.5)
        self.second = torch.tensor(rng.normal(size=(n, hidden, size, words)) / hidden**0.5)
        self.base = torch.tensor(rng.normal(size=(n, size, words)))

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        which, read = tokens[:, -1], tokens[:, :-1].clamp(max=self.words)
        inside = torch.tanh(self.first[which[:, None], torch.arange(self.length), read].sum(1))
        logits = torch.einsum("bh,bhlv->blv", inside, self.second[which]) * self.moving
        answer = torch.full((*tokens.shape, self.vocab_size), -torch.inf, dtype=torch.float64)
        answer[:, :-1, : self.words] = torch.log_softmax(logits + self.base[which], -1)
        return answer[at]

    def at(self, line: Line) -> dict[int, Row]:
        """The log-marginals of one canvas's masked positions, in plain numbers."""
        return dict(zip(self.masked(line), self(torch.tensor([line]))[:, : self.words].tolist()))

    def masked(self, line: Line) -> list[int]:
        return [i for i, x in enumerate(line) if x == self.mask_id]

    def start(self, given: Sequence[int] = ()) -> list[Line]:
        """A canvas for every network, with tokens given at some positions."""
        lines = [[self.mask_id] * self.length + [number] for number in range(self.count)]
        for number, line in enumerate(lines):
            for i in given:
                line[i] = (5 * i + number) % self.words
        return lines


# (length, given): nothing, a prompt, lengths that no block divides, tokens in the middle and at
# the end.
SHAPES = ((6, ()), (9, (0, 1)), (11, (0, 1, 2)), (7, (0, 5)), (10, (0, 4, 5)))


def batches(count: int = 10) -> Iterator[tuple[Toys, list[Line]]]:
    """`count` random networks on canvases of every shape: 50 cases."""
    for length, given in SHAPES:
        toys = Toys(length, count)
        yield toys, toys.start(given)


def agree(spec: str, reference: Callable[[Toys, Line], Found]) -> list[Found]:
    """Compares a sampler with its reference on all batches; what was found, to say more of."""
    every = []
    for toys, lines in batches():
        results = found(cold(spec, toys, lines))
        for line, result in zip(lines, results):
            assert result == reference(toys, line), (spec, line)
        every += results
    return every


def cold(spec: str, toys: Toys, lines: list[Line], draw: Draw | None = None) -> Decoded:
    """The sampler at temperature 0, ties by index."""
    return decode(
        SAMPLERS.build(spec),
        toys,
        torch.tensor(lines),
        streams=Streams(0, len(lines)),
        draw=draw or Draw(temperature=0),
        ties="index",
        trace=True,
    )


def found(result: Decoded) -> list[Found]:
    assert result.trace is not None
    rounds = result.trace.reveal_rounds().tolist()
    return list(zip(result.tokens.tolist(), rounds, result.calls.tolist()))


def prompt_of(start: Line, mask: int) -> int:
    """How many tokens are given at the beginning."""
    return next((i for i, x in enumerate(start) if x == mask), len(start))


def open_block(toys: Toys, line: Line, prompt: int, size: int) -> list[int]:
    """The masked positions of the first block that has any."""
    left = toys.masked(line)
    first = min((i - prompt) // size for i in left)
    return [i for i in left if (i - prompt) // size == first]


def likeliest(row: Row) -> int:
    return max(range(len(row)), key=lambda x: row[x])


def sure(row: Row) -> float:
    """max p, rounded as scores are."""
    return rounded(exp(max(row)))


def nats(row: Row) -> float:
    return -sum(exp(x) * x for x in row)


def rounded(value: float) -> float:
    return round(value / 1e-9) * 1e-9
