"""Calls of rows that branch, and of some of the rows."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.checks import check_answer, summed
from maskwalk.decoding.counting import Counted, asking_for
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


class Echo:
    """Says at every place how often its row was shown, so that answers can be told apart."""

    vocab_size, mask_id, score_grid = 3, 3, 1e-12

    def __init__(self, doubts: bool) -> None:
        self.doubts, self.asked = doubts, []

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == 3 if at is None else at
        self.asked.append((tokens.clone(), at.clone()))
        row, place = at.nonzero(as_tuple=True)
        seen = tokens[row].masked_fill(torch.arange(4) == place[:, None], 3)
        return torch.log_softmax(torch.stack([seen.sum(1), place, row * 0], 1).double(), -1)


def test_a_denoiser_that_doubts_is_read_at_revealed_tokens_in_one_call() -> None:
    """And one that does not is asked with each token masked, for a call each: the same answers."""
    tokens = torch.tensor([[0, 3, 1, 2], [1, 1, 2, 0], [3, 3, 0, 0]])
    at = torch.tensor([[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 0, 0]]).bool()
    answers = []
    for doubts, calls in ((True, [1, 1, 1]), (False, [3, 3, 1])):
        echo = Echo(doubts)
        counted = Counted(echo, 3, torch.device("cpu"))
        answers.append(counted.doubt(tokens, at))
        assert counted.calls.tolist() == calls
        assert len(echo.asked) == (1 if doubts else 2)
    assert torch.equal(*answers)


@dataclass(frozen=True)
class OneWrong:
    """A uniform denoiser whose marginal at one position sums to a half."""

    vocab_size: int
    wrong: int
    score_grid: float = 1e-9

    @property
    def mask_id(self) -> int:
        return self.vocab_size

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        flat = torch.full((*tokens.shape, self.vocab_size), 1 / self.vocab_size)
        flat[:, self.wrong] /= 2
        return flat.log()[at]


@pytest.mark.parametrize("vocab", [10, 140_000])  # a row of the second is read by torch
@pytest.mark.parametrize("wrong", [0, 7, 12, 31])
def test_a_marginal_that_sums_to_a_half_is_found_while_it_is_asked_for(
    vocab: int, wrong: int
) -> None:
    with pytest.raises(MaskwalkError, match=r"a marginal that sums to 0\.5, not 1"):
        decode("confidence(block=1)", OneWrong(vocab, wrong), torch.full((1, 32), vocab), seed=0)


@pytest.mark.parametrize("width", [10, 9_000, 140_000])  # multiplied, summed, summed by torch
@pytest.mark.parametrize("total", [0.5, 1.5])
@pytest.mark.parametrize("row", [0, 1])
def test_the_sum_that_is_furthest_from_one_is_told(width: int, total: float, row: int) -> None:
    table = torch.full((2, width), -math.log(width))
    check_answer(OneWrong(width, 0), table, 2)
    table[row] += math.log(total)
    with pytest.raises(MaskwalkError, match=rf"a marginal that sums to {total}, not 1"):
        check_answer(OneWrong(width, 0), table, 2)


def test_a_row_or_two_of_an_answer_are_summed_and_others_as_rows_get_fewer() -> None:
    rows = {many: list(summed(many)) for many in range(1, 65)}
    assert all(1 <= len(some) <= 2 and some[-1] < many for many, some in rows.items())
    assert rows[1] == [0] and rows[2] == [0, 1]
    assert len({some[0] for some in rows.values()}) > 20
