"""Temperature, top-p in both public readings and min-p, against distributions by hand."""

from dataclasses import asdict

import pytest
import torch
from torch import Tensor

from maskwalk.decoding.draw import Draw
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
    options = {"temperature": 1.0, "top_p": 0.81, "top_p_strict": 1.0, "min_p": 0.0}
    draw = Draw(top_p=0.81)
    assert asdict(draw) == {"precision": "float64"} | options
    rows, zeros = torch.arange(5000), torch.zeros(5000, dtype=torch.int64)
    for precision in ("float64", "bfloat16"):
        draw = Draw(precision=precision, top_p=0.81)
        tokens = draw(P.log().expand(5000, -1), Streams(0, 5000), 0, rows, zeros)
        share = torch.bincount(tokens, minlength=4) / 5000
        assert share[2] == 0 and abs(float(share[1]) - 0.5 / 0.95) < 0.05


@pytest.mark.parametrize("bad", [{"top_p": 0.0}, {"top_p_strict": 1.1}, {"min_p": -0.1}])
def test_bad_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(MaskwalkError):
        Draw(**bad)
