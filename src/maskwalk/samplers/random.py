"""Random unmasking: a uniformly random set of `block` masked positions per round.

`steps` says in how many rounds instead (parts/counts.py).

It looks at no score, so the denoiser is asked only at the chosen positions. Source: the paper, §2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.samplers.parts.counts import SWEEP, Block, check_counts, count_now, counted_from


@SAMPLERS.register("random")
@dataclass(frozen=True)
class Random(UnmaskingPolicy):
    """Uniformly random: `block` masked positions per round, whatever the scores."""

    block: Block = 1
    steps: int | None = None
    spread: str = "even"
    added_later: ClassVar[tuple[str, ...]] = ("steps", "spread")
    sweep: ClassVar[tuple[dict[str, Any], ...]] = SWEEP

    def __post_init__(self) -> None:
        check_counts(self.block, self.steps, self.spread)

    @property
    def reveals_one(self) -> bool:
        """With one per round."""
        return self.block == 1 and self.steps is None

    def first_picks(self, length: int) -> range:
        """Any position, always."""
        return range(length)

    def init(self, canvas: Canvas) -> State:
        """What counting in steps needs."""
        return counted_from(canvas, self.steps)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """A uniform subset."""
        count, state = count_now(view, state, self.block, self.steps, self.spread)
        return view.random(count), state
