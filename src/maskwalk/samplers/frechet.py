"""Fréchet profile: as many positions as are sure together, whatever depends on what.

Sort the confidences c_i = max p_i in falling order. All n likeliest tokens of the first n positions
occur together with probability at least c_(1) + … + c_(n) − (n − 1), however they depend on each
other; any other tuple with probability at most 1 − c_(n). Reveal the largest n for which the first
exceeds the second by more than `margin`, and at least one:

    Σ_{j ≤ n} c_(j) − (n − 1) − (1 − c_(n)) > δ.

The left side falls with n. Default δ = 0.25; with equal confidences it is factor(f = 1 − δ), and
otherwise takes at least as many.

Source: Fast-dLLM++ [arXiv 2606.02955]; Ringo-Star/FastdLLM_plusplus 29fd034, the default of its
tables. There c_i is the probability of the drawn token (an argmax by default), inside blocks of 32.
Sums are of exact confidences, also where ranks are of rounded ones.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.scores import confidence
from maskwalk.decoding.view import View
from maskwalk.errors import real


@SAMPLERS.register("frechet")
@dataclass(frozen=True)
class Frechet(UnmaskingPolicy):
    """The n most confident, n the largest with Σc - (n-1) - (1-c_n) above a margin."""

    margin: float = 0.25
    ranks_by: ClassVar[str] = "confidence"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"margin": margin} for margin in (0.5, 0.25, 0.1, 0.0)
    )

    def __post_init__(self) -> None:
        real("margin", self.margin, 0.0, 1.0)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The longest prefix whose bound exceeds the margin."""
        scores, sure = view.score("confidence"), -view.unpack(confidence(view.scored))
        # Of those that rank alike the least sure is counted first, so no tie spends more.
        order = sure.argsort(dim=1, stable=True)
        order = order.gather(1, scores.gather(1, order).argsort(dim=1, stable=True))
        sure = sure.gather(1, order)
        n = torch.arange(1, sure.shape[1] + 1, device=sure.device)
        together = sure.cumsum(1) - (n - 1)
        other = 1 - sure.cummin(1).values
        count = (together - other > self.margin).sum(1).clamp(min=1)
        return view.lowest(scores, count), state
