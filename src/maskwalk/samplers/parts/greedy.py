"""Greedy unmasking: reveal the `block` positions whose score is lowest, then draw there; or as many
as `steps` rounds need (counts.py).

The paper's baselines differ only in the score (see decoding/scores.py); each has a file of its own.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.samplers.parts.counts import SWEEP, Block, check_counts, count_now, counted_from


@dataclass(frozen=True)
class Greedy(UnmaskingPolicy):
    """The `block` lowest-scored positions per round, by the score the subclass names."""

    block: Block = 1
    steps: int | None = None
    spread: str = "even"
    added_later: ClassVar[tuple[str, ...]] = ("steps", "spread")
    ranks_by: ClassVar[str]
    sweep: ClassVar[tuple[dict[str, Any], ...]] = SWEEP

    def __post_init__(self) -> None:
        check_counts(self.block, self.steps, self.spread)

    @property
    def reveals_one(self) -> bool:
        """With one per round."""
        return self.block == 1 and self.steps is None

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def init(self, canvas: Canvas) -> State:
        """What counting in steps needs."""
        return counted_from(canvas, self.steps)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The lowest scores, ties as decode was told."""
        count, state = count_now(view, state, self.block, self.steps, self.spread)
        return view.lowest(view.score(self.ranks_by), count), state
