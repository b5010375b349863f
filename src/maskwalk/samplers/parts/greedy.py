"""Greedy unmasking: reveal the `block` positions whose score is lowest, then draw there.

The paper's baselines differ only in the score (see decoding/scores.py); each has a file of its own.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.samplers.parts.block_sizes import SWEEP, Block, block_size, check_block


@dataclass(frozen=True)
class Greedy(UnmaskingPolicy):
    """The `block` lowest-scored positions a round, by the score the subclass names."""

    block: Block = 1
    ranks_by: ClassVar[str]
    sweep: ClassVar[tuple[dict[str, Any], ...]] = SWEEP

    def __post_init__(self) -> None:
        check_block(self.block)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The lowest scores, ties as decode was told."""
        return view.lowest(view.score(self.ranks_by), block_size(self.block, view.round)), state
