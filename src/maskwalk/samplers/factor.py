"""Factor: the more positions at once, the surer each must be.

Sort the confidences c_i = max p_i in falling order, c_(1) ≥ c_(2) ≥ …; reveal the first n, n the
largest with (n + 1)(1 − c_(n)) < f, and at least one. Default f = 1. The left side rises with n, so
a prefix is meant: the fewer are sure, the fewer are taken.

Source: Fast-dLLM [arXiv 2505.22618], `factor`. The public code reads the drawn token's probability
(an argmax by default), sequence by sequence, inside blocks. Older Fast-dLLM, dInfer (fce4e32) and
d2Cache are off by one at the end: they count the positions before the first that fails, and where
that is the last of all, it is revealed as well.
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


@SAMPLERS.register("factor")
@dataclass(frozen=True)
class Factor(UnmaskingPolicy):
    """The n most confident, n the largest with (n+1)(1-c_n) < f."""

    f: float = 1.0
    ranks_by: ClassVar[str] = "confidence"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"f": f} for f in (0.25, 0.5, 1.0, 2.0))

    def __post_init__(self) -> None:
        real("f", self.f, 0.0)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The longest prefix that satisfies the bound."""
        sure = confidences(view).sort(1, descending=True).values
        n = torch.arange(1, sure.shape[1] + 1, device=sure.device)
        count = ((n + 1) * (1 - sure) < self.f).sum(1).clamp(min=1)
        return view.lowest(view.score("confidence"), count), state
