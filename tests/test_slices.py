"""Work in slices gives the same bits as work at once, and a large table is not copied."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import maskwalk.kernels.rows as slices
from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.scores import SCORES, on_grid
from maskwalk.decoding.view import View
from maskwalk.kernels.rows import by_rows, keep_rows, log_over
from maskwalk.kernels.small import MANY_ROWS, first_largest, first_of_each, of_each
from maskwalk.streams import Streams, inverse_cdf


def table(rows: int = 37, vocab: int = 500, dtype: torch.dtype = torch.float32) -> Tensor:
    logits = 4 * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(0))
    logits[:, ::7] = -torch.inf
    return torch.log_softmax(logits.to(dtype), -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_and_draws_do_not_depend_on_the_slices(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_probs, places = table(dtype=dtype), torch.arange(37)
    u, streams = torch.linspace(0, 1 - 1e-16, 37, dtype=torch.float64), Streams(3, 37)
    draws = [Draw(), Draw(precision="bfloat16"), Draw(temperature=0.7, top_p=0.9, min_p=0.01)]

    def everything() -> list[Tensor]:
        drawn = [draw(log_probs, streams, 2, places, places) for draw in draws]
        return [
            *(f(log_probs) for f in map(SCORES.__getitem__, SCORES)),
            inverse_cdf(log_probs, u),
            *drawn,
        ]

    assert len(list(slices.slices(log_probs))) == 1
    whole = everything()
    for size in (1, 501, 1500, 499 * 37):
        monkeypatch.setattr(slices, "SLICE", size)
        assert len(list(slices.slices(log_probs))) > 1
        for one, other in zip(whole, everything()):
            assert one.dtype == other.dtype and torch.equal(one, other)


def test_the_log_of_a_table_is_torchs() -> None:
    """Also of zeros, and of what is no number; and into a part of a larger table."""
    random = torch.Generator().manual_seed(0)
    probs = torch.rand(50, 7, generator=random, dtype=torch.float64)
    probs[torch.rand(probs.shape, generator=random) < 0.8] = 0.0
    probs[3], probs[4, 2] = torch.nan, 5e-324
    wanted, out = probs.log(), torch.full((60, 7), 2.0, dtype=torch.float64)
    log_over(probs.clone(), out[5:55])
    assert torch.equal(out[5:55].nan_to_num(1.0), wanted.nan_to_num(1.0))
    assert (out[:5] == 2).all() and (out[55:] == 2).all()


def test_rows_keep_their_order_and_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, factor = torch.arange(12.0).view(4, 3), torch.arange(4.0)
    for size in (3, 6, 9, 100):
        monkeypatch.setattr(slices, "SLICE", size)
        found = by_rows(lambda x, y: x * y[:, None], wide, factor)
        assert torch.equal(found, wide * factor[:, None])
    assert by_rows(lambda x: x.sum(1), wide[:0]).shape == (0,)


@pytest.mark.parametrize("slice_size", [1, 1200])
def test_rows_are_kept_in_place(slice_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = table()
    kept = torch.rand(37, generator=torch.Generator().manual_seed(1)) < 0.6
    small = whole.clone()
    copied = keep_rows(small, kept)
    assert torch.equal(copied, whole[kept]) and torch.equal(small, whole)
    monkeypatch.setattr(slices, "LARGE", 0)
    monkeypatch.setattr(slices, "SLICE", slice_size)
    found = keep_rows(small, kept)
    assert torch.equal(found, whole[kept]) and found.data_ptr() == small.data_ptr()
    assert keep_rows(small, torch.ones(37, dtype=torch.bool)) is small


class Asked:
    """A denoiser that counts its calls."""

    vocab_size, mask_id, score_grid = 500, 500, 1e-4

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        self.calls += 1
        at = tokens == self.mask_id if at is None else at
        return table(at.numel())[at.flatten()]


def test_the_last_look_is_the_same_and_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "LARGE", 0)
    tokens = torch.full((3, 5), 500)
    tokens[1, 2] = 4
    canvas = Canvas(tokens, tokens != 500, 500)
    chosen = canvas.masked & (torch.arange(5) % 2 == 0)
    asked = Asked()
    view = View(canvas, asked, RoundStreams(Streams(0, 3), 0, 5, Draw(), "uniform"))
    view.score("entropy")
    expected = view.log_marginals_at(chosen)
    assert torch.equal(view.take_marginals(chosen), expected) and asked.calls == 1
    # What it gave up is asked for again, not remembered wrongly.
    assert torch.equal(view.log_marginals_at(chosen), expected) and asked.calls == 2


def test_numbers_are_laid_out_alike_however_large_the_canvas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By numpy where a canvas is small, by torch where it is not: infinite where nothing is."""
    tokens = torch.tensor([[0, 500, 500, 1], [500, 2, 3, 500]])
    canvas = Canvas(tokens, tokens != 500, 500)
    rng = RoundStreams(Streams(0, 2), 0, 4, Draw(), "uniform")
    packed = torch.tensor([0.5, 0.25, 1.5, 2.5], dtype=torch.float64)
    inf = float("inf")
    wanted = [[inf, 0.5, 0.25, inf], [1.5, inf, inf, 2.5]]
    view = View(canvas, Asked(), rng)
    assert view.unpack(packed).tolist() == wanted
    drawn = torch.tensor([3, 1, 4, 1])
    unlikely = view.score_drawn(drawn)
    probs = Asked()(tokens).gather(1, drawn[:, None])[:, 0].exp()
    assert torch.equal(unlikely, view.unpack(-on_grid(probs, Asked.score_grid)))
    monkeypatch.setattr("maskwalk.kernels.small.SMALL", 0)
    view = View(replace(canvas), Asked(), rng)
    assert view.unpack(packed).tolist() == wanted
    assert torch.equal(view.score_drawn(drawn), unlikely)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_small_tables_are_read_as_large_ones(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numpy's numbers and torch's have the same bits: the first largest, one of each, the grid."""
    log_probs = table(dtype=dtype)
    log_probs[:, 200:] = log_probs[:, 200:].round()  # many equals
    columns = torch.arange(37) * 13

    def everything() -> list[Tensor]:
        numbers = log_probs[:, 1].exp()
        return [first_largest(log_probs), of_each(log_probs, columns), on_grid(numbers, 1e-3)]

    few = everything()
    monkeypatch.setattr("maskwalk.kernels.small.FEW_THREADS", 0)
    monkeypatch.setattr("maskwalk.kernels.small.SMALL", 0)
    for one, other in zip(few, everything()):
        assert one.dtype == other.dtype and torch.equal(one, other)
    assert torch.equal(few[0], log_probs.argmax(-1))


@pytest.mark.parametrize("rows", [1, 7, MANY_ROWS, MANY_ROWS + 3])
def test_rows_begin_where_they_do(rows: int) -> None:
    for columns in (5, 3, 5):
        assert first_of_each(rows, columns).tolist() == [columns * row for row in range(rows)]
