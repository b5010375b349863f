"""A metric: a number of decoded sequences."""

NEXT = "maskwalk sample --include <PATH>"

FILE = '''"""<TITLE>: how often a sequence repeats the token before it.

Change this text with the metric.
"""

from maskwalk import METRICS, Estimate


# better: 1 higher, -1 lower, 0 neither. The docstring is what tables and pages say of it.
@METRICS.register("<NAME>", title="<WORDS>", better=0, digits=3, limits=(0, 1))
def <NAME>(sample) -> Estimate | None:
    """Share of positions that repeat the token before them."""
    if sample.tokens.shape[1] < 2:
        return None  # this world has no such number
    # Change this line: one number per sequence. `sample` has world, calls, masked, task and valid.
    each = (sample.tokens[:, 1:] == sample.tokens[:, :-1]).double().mean(1)
    return Estimate.of(each, sample.prompts)  # the error is that of the prompts' means
'''

TEST = '''"""<NAME> is what it says, and is measured wherever its file is: pytest test_<NAME>.py"""

import pytest
import torch
from <NAME> import <NAME>

import maskwalk


def sample(tokens):
    tokens = torch.tensor(tokens)
    n = len(tokens)
    length = torch.full((n,), tokens.shape[1])
    return maskwalk.Sample(None, tokens, torch.ones_like(length), torch.arange(n), length)


def test_by_hand():
    estimate = <NAME>(sample([[1, 1, 2], [3, 3, 3], [1, 2, 3], [0, 1, 1]]))
    assert estimate.value == 0.5 and estimate.n == 4
    assert estimate.se == pytest.approx((1 / 6) ** 0.5 / 2)  # of 1/2, 1, 0, 1/2
    assert <NAME>(sample([[1], [2]])) is None


def test_it_is_measured():
    result = maskwalk.run("bisection", world="walk(length=8)", count=32)
    repeats = (result.tokens[:, 1:] == result.tokens[:, :-1]).double().mean()
    assert result.metrics["<NAME>"] == pytest.approx(float(repeats))
'''
