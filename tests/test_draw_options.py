"""Temperature, top-p in both public readings, min-p and floor, against distributions by hand."""

import math
from dataclasses import asdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw, mode_name, read_draw
from maskwalk.errors import MaskwalkError
from maskwalk.streams import Streams

P = torch.tensor([[0.15, 0.5, 0.05, 0.3]], dtype=torch.float64)


def shaped(probs: Tensor = P, **options: float) -> list[float]:
    return Draw(**options).shape(probs.log()).exp()[0].tolist()


def test_top_p_keeps_the_token_that_crosses() -> None:
    # Sorted .5, .3, .15, .05; before each: 0, .5, .8, .95. At .8 two tokens reach it exactly.
    assert shaped(top_p=0.8) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(top_p=0.79) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(top_p=0.81) == pytest.approx([0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95])
    assert shaped(top_p=0.1) == [0, 1, 0, 0]


def test_top_p_strict_drops_the_token_that_crosses() -> None:
    # Up to and with each: .5, .8, .95, 1.
    assert shaped(top_p_strict=0.8) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(top_p_strict=0.79) == [0, 1, 0, 0]
    assert shaped(top_p_strict=0.94) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(top_p_strict=0.1) == [0, 1, 0, 0]  # always at least one


def test_min_p_is_relative_to_the_likeliest() -> None:
    assert shaped(min_p=0.3) == pytest.approx([0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95])
    assert shaped(min_p=0.31) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(min_p=1.0) == [0, 1, 0, 0]


def test_floor_is_relative_to_the_typical_probability() -> None:
    # H = 1.142 nats, exp(-H) = .3192: the bar is floor times that.
    typical = math.exp(-sum(-p * math.log(p) for p in P[0].tolist()))
    assert shaped(floor=0.14) == pytest.approx(P[0].tolist())  # .05 is just above .0447
    assert shaped(floor=0.05 / typical + 1e-3) == pytest.approx(
        [0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95]
    )
    assert shaped(floor=1.0) == [0, 1, 0, 0]  # .3 is below .3192


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=12), st.floats(0.0, 1.0), st.booleans())
def test_floor_keeps_the_likeliest_and_all_of_a_uniform_marginal(
    weights: list[float], floor: float, flat: bool
) -> None:
    row = torch.tensor([[1.0] * len(weights) if flat else weights], dtype=torch.float64)
    probs = row / row.sum()
    found = torch.tensor(shaped(probs, floor=floor))
    assert found[int(probs.argmax())] > 0 and float(found.sum()) == pytest.approx(1)
    if flat:
        assert found.tolist() == pytest.approx(probs[0].tolist())
    bar = floor * math.exp(-float(torch.special.entr(probs).sum()))
    assert all(p >= bar - 1e-6 for p, kept in zip(probs[0].tolist(), found.tolist()) if kept > 0)
    assert all(p <= bar + 1e-6 for p, kept in zip(probs[0].tolist(), found.tolist()) if kept == 0)


def test_floor_is_applied_last() -> None:
    # After top-p .81 the marginal is .1579, .5263, .3158: exp(-H) = .3688 is what counts.
    assert shaped(top_p=0.81, floor=0.42) == pytest.approx(shaped(top_p=0.81))
    assert shaped(top_p=0.81, floor=0.44) == pytest.approx([0, 0.625, 0, 0.375])


@pytest.mark.parametrize(
    ("text", "draw", "ties", "name"),
    [
        ("exact", None, None, "exact"),
        ("as_published", None, None, "as_published"),
        ("exact", "draw(top_p=0.9)", None, "draw(top_p=0.9)"),
        ("exact", "draw(precision='bfloat16')", "index", "as_published"),
        ("exact", None, "index", "draw(), ties index"),
        ("as_published", "draw()", "uniform", "exact"),
        ("draw(floor=0.2)", None, None, "draw(floor=0.2)"),
    ],
)
def test_a_preset_is_a_whole_that_draw_and_ties_may_change(
    text: str, draw: str | None, ties: str | None, name: str
) -> None:
    assert mode_name(*read_draw(text, draw, ties)) == name


def test_draws_that_cannot_be_read_get_a_sentence() -> None:
    for text, says in (
        ("exat", "Known: exact, as_published, .*; or a draw"),
        ("draw(top_q=3)", "Unknown parameter"),
        ("drow(top_p=0.9)", "Did you mean 'draw'"),
        ("draw(floor=1.5)", "floor must be between 0 and 1, not 1.5"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            read_draw(text)
    with pytest.raises(MaskwalkError, match="Unknown ties"):
        read_draw("exact", None, "low")


def test_temperature_comes_first_and_min_p_last() -> None:
    # Squares: .0225, .25, .0025, .09, of .365: .0616, .685, .0068, .2466. The first alone is below
    # .7, with the second it crosses.
    assert shaped(temperature=0.5, top_p=0.7) == pytest.approx([0, 0.25 / 0.34, 0, 0.09 / 0.34])
    assert shaped(temperature=0.5, top_p_strict=0.7) == [0, 1, 0, 0]
    # After top-p the ratio .3/.5 = .6 is what min-p looks at.
    assert shaped(top_p=0.81, min_p=0.59) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(top_p=0.81, min_p=0.61) == [0, 1, 0, 0]


def test_defaults_change_nothing_and_zero_stays_zero() -> None:
    log_probs = P.log()
    assert Draw().shape(log_probs) is log_probs
    zero = torch.tensor([[0.0, 0.5, 0.0, 0.5]], dtype=torch.float64)
    for options in ({"top_p": 0.99}, {"top_p_strict": 0.99}, {"min_p": 1e-9}, {"top_p": 0.2}):
        found = shaped(zero, **options)
        assert found[0] == found[2] == 0 and sum(found) == pytest.approx(1)
    # Equals: the lower token first.
    assert shaped(zero, top_p=0.5) == [0, 1, 0, 0]


def test_options_are_in_the_record_and_are_what_is_drawn() -> None:
    options = {"temperature": 1.0, "top_p": 0.81, "top_p_strict": 1.0, "min_p": 0.0, "floor": 0.0}
    options |= {"top_k": 0, "scores": "model", "over": "drawn"}
    draw = Draw(top_p=0.81)
    assert asdict(draw) == {"precision": "float64"} | options
    rows, zeros = torch.arange(5000), torch.zeros(5000, dtype=torch.int64)
    for precision in ("float64", "bfloat16"):
        draw = Draw(precision=precision, top_p=0.81)
        tokens = draw(P.log().expand(5000, -1), Streams(0, 5000), 0, rows, zeros)
        share = torch.bincount(tokens, minlength=4) / 5000
        assert share[2] == 0 and abs(float(share[1]) - 0.5 / 0.95) < 0.05


@pytest.mark.parametrize(
    "bad", [{"top_p": 0.0}, {"top_p_strict": 1.1}, {"min_p": -0.1}, {"floor": -0.1}]
)
def test_bad_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(MaskwalkError):
        Draw(**bad)


def test_temperature_zero_is_the_argmax_in_every_precision() -> None:
    tokens = torch.tensor([[0.1, 0.5, 0.2, 0.2], [0.4, 0.1, 0.4, 0.1]], dtype=torch.float64).log()
    place = torch.arange(2)
    for options in ({}, {"precision": "bfloat16"}, {"top_p": 0.3, "top_k": 1, "floor": 1.0}):
        draw = Draw(temperature=0, **options)
        assert draw(tokens, Streams(0, 2), 0, place, place).tolist() == [1, 0]
        assert draw.shape(tokens).exp().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
        assert not draw.exact


def test_top_k_keeps_the_likeliest_and_its_equals() -> None:
    assert shaped(top_k=2) == pytest.approx([0, 0.625, 0, 0.375])
    assert shaped(top_k=1) == [0, 1, 0, 0]
    assert shaped(top_k=4) == shaped() == shaped(top_k=9)
    even = torch.tensor([[0.2, 0.3, 0.3, 0.2]], dtype=torch.float64)
    assert shaped(even, top_k=1) == pytest.approx([0, 0.5, 0.5, 0])


class Two:
    """Two positions of four tokens, whatever is revealed."""

    vocab_size, mask_id, score_grid = 4, 4, 1e-9
    probs = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.49, 0.17, 0.17, 0.17]], dtype=torch.float64)

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == 4 if at is None else at
        return self.probs.expand(len(tokens), 2, 4)[at].log()


def test_scores_are_of_the_model_or_of_what_is_drawn_from() -> None:
    # Confidences .5 and .49; squared and normalised .667 and .735.
    def rounds(sampler: str, draw: str) -> list[int]:
        decoded = decode(sampler, Two(), [[4, 4]], streams=Streams(0, 1), draw=draw, trace=True)
        assert decoded.trace is not None
        return decoded.trace.reveal_rounds()[0].tolist()

    assert rounds("confidence()", "draw(temperature=0.5)") == [0, 1]
    assert rounds("confidence()", "draw(temperature=0.5, scores='shaped')") == [1, 0]
    # An argmax is certain of everything: its scores are those before it.
    assert rounds("confidence()", "draw(temperature=0, scores='shaped')") == [0, 1]
    assert rounds("threshold(0.66)", "draw(temperature=0.5)") == [0, 1]
    assert rounds("threshold(0.66)", "draw(temperature=0.5, scores='shaped')") == [0, 0]
    # Draw first: top-k 1 makes every draw an argmax, of probability 1 as drawn from.
    assert rounds("threshold_drawn(0.9)", "draw(top_k=1)") == [0, 1]
    assert rounds("threshold_drawn(0.9)", "draw(top_k=1, scores='shaped')") == [0, 0]
