"""Confidence threshold: reveal every position whose likeliest token is likely enough.

With c_i = max p_i, reveal {i : c_i ≥ τ}, or argmax c_i where that set is empty. Default τ = 0.9.

Source: Fast-dLLM [arXiv 2505.22618]. Its code compares the probability of the token it has already
*drawn*, which biases the law (see threshold_drawn) unless tokens are argmaxes, as by default there;
it works inside blocks: blocks(size=32, inner=threshold()).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real
from maskwalk.samplers.parts.picks import confidences, or_best


@SAMPLERS.register("threshold")
@dataclass(frozen=True)
class Threshold(UnmaskingPolicy):
    """Every position with max p_i ≥ tau, else the most confident."""

    tau: float = 0.9
    ranks_by: ClassVar[str] = "confidence"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"tau": tau} for tau in (0.5, 0.7, 0.8, 0.9, 0.99)
    )

    def __post_init__(self) -> None:
        real("tau", self.tau, 0.0, 1.0)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """What reaches the threshold, to within half the grid."""
        return or_best(view, confidences(view) >= self.tau - view.score_grid / 2), state
