"""Calls of rows that branch, and of some of the rows."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.counting import asking_for
from maskwalk.decoding.decode import decode
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import LeftToRight
from maskwalk.streams import Streams
from tests.test_samplers import Lookup


@dataclass(frozen=True)
class Branches(Sampler):
    """Reads `k` candidates for the first masked position of each row, then keeps one."""

    k: int = 2
    extra: int = 0

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        first = canvas.masked & (canvas.masked.cumsum(1) == 1)
        copies = canvas.tokens.repeat_interleave(self.k, 0)
        candidates = torch.arange(len(copies)) % 2
        copies[first.repeat_interleave(self.k, 0)] = candidates
        copies = torch.cat([copies, copies[: self.extra]])
        at = copies == canvas.mask_id
        denoise(copies, at)
        return canvas.reveal(first, candidates[:: self.k])


@dataclass(frozen=True)
class Halves(Sampler):
    """One token left to right, in two goes: the even rows, then the odd ones."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        tokens = canvas.tokens.clone()
        even = rng.streams.ids % 2 == 0
        for rows in (even, ~even):
            if bool(rows.any()):
                some = canvas.select(rows)
                after = LeftToRight().step(some, asking_for(denoise, rows), rng.on(rows))
                tokens[rows] = after.tokens
        return replace(canvas, tokens=tokens)


def start() -> Tensor:
    tokens = torch.full((5, 4), 2)
    tokens[1, 1:] = 0  # one to fill
    tokens[3] = 1  # nothing
    return tokens


def test_every_candidate_is_a_call_of_its_row() -> None:
    lookup = Lookup(torch.full((4,), 0.7, dtype=torch.float64))
    found = decode(Branches(k=3), lookup, start(), streams=Streams(0, 5))
    # Four positions: three rounds in which the candidates leave something to ask, then none.
    assert found.calls.tolist() == [9, 0, 9, 0, 9]
    assert found.rounds.tolist() == [4, 1, 4, 0, 4]
    with pytest.raises(MaskwalkError, match="as many candidates of each"):
        decode(Branches(k=3, extra=1), lookup, start(), streams=Streams(0, 5))


def test_some_of_the_rows_are_counted_drawn_and_watched_where_they_belong() -> None:
    lookup = Lookup(torch.tensor([0.5, 0.6, 0.7, 0.8], dtype=torch.float64))
    found, plain = (
        decode(rule, lookup, start(), streams=Streams(4, 5), trace=True)
        for rule in (Halves(), LeftToRight())
    )
    assert torch.equal(found.tokens, plain.tokens)
    assert found.calls.tolist() == plain.calls.tolist() == [4, 1, 4, 0, 4]
    assert found.trace is not None and plain.trace is not None
    for name, values in plain.trace.events.items():
        assert torch.equal(found.trace.events[name].nan_to_num(9), values.nan_to_num(9)), name
