"""Low-confidence remasking: draw everywhere, keep the likeliest draws.

Each round draws x_i ~ p_i at all N masked positions and keeps the n with the largest p_i(x_i); over
`steps` rounds, n = ⌊N/steps⌋, one more in the first N mod steps rounds, so all N are revealed; more
steps than positions is one per round. Default 8 steps.

Source: LLaDA [arXiv 2502.09992], remasking="low_confidence". The rest is called remasked there; it
was never shown to the model, so nothing is taken back. Its temperature is 0 (argmax) by default,
where drawing first does no harm; the probability it ranks by is the one at temperature 1 (as here).
Inside its blocks: blocks(size=32, inner=low_confidence(steps=32)), with the steps of a
block. Counts are per sequence here as there.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, State
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.decoding.view import View
from maskwalk.errors import ROUNDS, whole
from maskwalk.samplers.parts.counts import one_more, spread_evenly
from maskwalk.samplers.parts.draw_first import DrawFirst


@SAMPLERS.register("low_confidence")
@dataclass(frozen=True)
class LowConfidence(DrawFirst):
    """Draw first: keeps the likeliest of the drawn tokens, over `steps` rounds."""

    steps: int = 8
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"steps": n} for n in (2, 4, 8, 24))

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)

    def init(self, canvas: Canvas) -> State:
        """How many there are to reveal, and the rounds since."""
        total = canvas.masked.sum(1)
        return {"total": total, "done": torch.zeros_like(total)}

    def keep(
        self, view: View, drawn: Float64[Tensor, "batch length"], state: State
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """This round's share, likeliest draws first."""
        count = spread_evenly(state["total"], state["done"], self.steps)
        return view.lowest_of_all(drawn, count), state | {"done": one_more(state["done"])}
