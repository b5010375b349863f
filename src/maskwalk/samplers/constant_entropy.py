"""Constant entropy: every round takes in about the same amount of information.

Order positions by entropy; reveal the longest prefix U, at least one, with Σ_{i∈U} H_i ≤ h nats.
Default h = 1.

Source: this project's reading of a name in the paper; its neighbour is EB-Sampler [arXiv
2505.24857]. Unlike entropy_bounded it counts the largest entropy as well, so one position more
uncertain than h is revealed alone, where entropy_bounded adds to it whatever fits the rest of the
bound.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real
from maskwalk.samplers.parts.picks import SLACK, entropy_ranking


@SAMPLERS.register("constant_entropy")
@dataclass(frozen=True)
class ConstantEntropy(UnmaskingPolicy):
    """The longest prefix in order of entropy with Σ H ≤ h nats (our reading)."""

    h: float = 1.0
    ranks_by: ClassVar[str] = "entropy"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"h": h} for h in (0.5, 1.0, 2.0, 4.0))

    def __post_init__(self) -> None:
        real("h", self.h, 0.0)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The longest prefix within the allowance."""
        rank, nats = entropy_ranking(view, "entropy")
        count = (nats.cumsum(1) <= self.h + SLACK).sum(1).clamp(min=1)
        return view.lowest(rank, count), state
