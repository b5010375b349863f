"""Threshold on what was drawn: the public reading of confidence-threshold decoding.

Each round draws x_i ~ p_i at all masked positions and keeps {i : p_i(x_i) ≥ τ}, or the likeliest
draw where that set is empty. Default τ = 0.9.

Source: Fast-dLLM [arXiv 2505.22618], whose tokens are argmaxes by default: then p_i(x_i) = max p_i
and this is `threshold`. At temperature 1 it is not: an unlikely token is thrown away and drawn
again later, until a likely one comes, so the law is biased towards likely tokens. Kept to show by
how much.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import State
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.decoding.view import View
from maskwalk.errors import real
from maskwalk.samplers.parts.draw_first import DrawFirst


@SAMPLERS.register("threshold_drawn")
@dataclass(frozen=True)
class ThresholdDrawn(DrawFirst):
    """Draw first: keeps drawn tokens of probability ≥ tau, else the likeliest."""

    tau: float = 0.9
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"tau": t} for t in (0.5, 0.7, 0.9, 0.99))

    def __post_init__(self) -> None:
        real("tau", self.tau, 0.0, 1.0)

    def keep(
        self, view: View, drawn: Float64[Tensor, "batch length"], state: State
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The likely draws, or the likeliest."""
        passed = drawn <= -self.tau + view.score_grid / 2
        none = ~passed.any(1, keepdim=True)
        return passed | view.lowest(drawn, 1, none.expand_as(passed)), state
