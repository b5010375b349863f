"""Left to right: the first masked position of each sequence, one per round.

Source: autoregressive decoding, as of any language model.
"""

from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View


@SAMPLERS.register("left_to_right")
@dataclass(frozen=True)
class LeftToRight(UnmaskingPolicy):
    """Left to right: the first masked position, one per round."""

    @property
    def reveals_one(self) -> bool:
        """Always."""
        return True

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The first masked position."""
        return view.masked & (view.masked.cumsum(1) == 1), state
