"""Hierarchical decoding: divide every masked segment at its surest position.

With c_i = max p_i, reveal in each maximal masked run the position of largest c if it is above
`low`, and all positions with c_i > `high`; where that is nothing, the position of largest c of the
sequence (which is in the set anyway if anything is). Defaults low = 0.4, high = 0.9.

Source: dInfer's hierarchical decoder [arXiv 2510.08666]. There c is the probability of the drawn
token (an argmax by default), inside blocks; among equals it takes the first of a run, where here
ties are as decode was told (fce4e32). Bisection in spirit: but the cut is wherever the model is
sure, so its depth is not bounded by a logarithm (compare guided_bisection).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real
from maskwalk.samplers.parts.picks import confidences
from maskwalk.samplers.parts.runs import runs


@SAMPLERS.register("hierarchy")
@dataclass(frozen=True)
class Hierarchy(UnmaskingPolicy):
    """The surest of every masked run if above `low`, and all above `high`."""

    low: float = 0.4
    high: float = 0.9
    ranks_by: ClassVar[str] = "confidence"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"low": 0.9, "high": 0.99},
        {"low": 0.7, "high": 0.9},
        {"low": 0.4, "high": 0.9},
        {"low": 0.4, "high": 0.7},
    )

    def __post_init__(self) -> None:
        real("high", self.high, real("low", self.low, 0.0, 1.0), 1.0)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """One of each run, or one of all where no run has a candidate; and the sure ones."""
        sure = confidences(view)
        passed = sure > self.low + view.score_grid / 2
        some = passed.any(1, keepdim=True)
        run = torch.where(some, runs(view.masked)[0], 0)
        best = view.lowest_of_each(view.score("confidence"), run, passed | ~some)
        return best | (sure > self.high + view.score_grid / 2), state
