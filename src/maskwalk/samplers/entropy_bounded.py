"""Entropy bounded: the longest prefix whose joint error is bounded by its entropies.

Order positions by a score (entropy by default); reveal the longest prefix U, at least one, with

    Σ_{i∈U} H_i − max_{i∈U} H_i ≤ γ    (nats).

The left side bounds the dependence that parallel drawing ignores: it bounds KL(joint ‖ product).
Common γ: .001, .01, .1, 1; default 0.1.

Source: EB-Sampler [arXiv 2505.24857]. Public versions differ in units (nats or bits), order by
confidence or margin too (`score`), and take a cumulative maximum that must run along positions, not
along the batch. In entropy order the maximum is the last one, so it is the sum of the
rest.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.scores import SCORES
from maskwalk.decoding.view import View
from maskwalk.errors import one_of, real
from maskwalk.samplers.parts.picks import SLACK, entropy_ranking


@SAMPLERS.register("entropy_bounded")
@dataclass(frozen=True)
class EntropyBounded(UnmaskingPolicy):
    """The longest prefix with Σ H - max H ≤ gamma nats."""

    gamma: float = 0.1
    score: str = "entropy"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"gamma": gamma} for gamma in (0.001, 0.01, 0.3, 1.0, 3.0)),
        {"gamma": 1.0, "score": "confidence"},
    )

    def __post_init__(self) -> None:
        real("gamma", self.gamma, 0.0)
        one_of("score", self.score, SCORES)

    @property
    def ranks_by(self) -> str:  # type: ignore[override]
        """The score it orders by."""
        return self.score

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The longest prefix within the bound."""
        rank, nats = entropy_ranking(view, self.score)
        # Infinite past the last masked position; there inf - inf is nan, which is no ≤ γ either.
        spent = nats.cumsum(1) - nats.cummax(1).values
        return view.lowest(rank, (spent <= self.gamma + SLACK).sum(1).clamp(min=1)), state
