"""Random unmasking: a uniformly random set of `block` masked positions a round.

It looks at no score, so the denoiser is asked only at the chosen positions. Source: the paper, §2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.samplers.parts.block_sizes import SWEEP, Block, block_size, check_block


@SAMPLERS.register("random")
@dataclass(frozen=True)
class Random(UnmaskingPolicy):
    """Uniformly random: `block` masked positions a round, whatever the scores."""

    block: Block = 1
    sweep: ClassVar[tuple[dict[str, Any], ...]] = SWEEP

    def __post_init__(self) -> None:
        check_block(self.block)

    def first_picks(self, length: int) -> range:
        """Any position, always."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """A uniform subset."""
        return view.random(block_size(self.block, view.round)), state
