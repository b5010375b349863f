"""Halton order: positions in the order of a low-discrepancy sequence, more of them each round.

The van der Corput number φ(j) mirrors j's binary digits at the point: φ(1) = 1/2, 1/4, 3/4, 1/8, …
Position ⌊L φ(j)⌋ comes j-th, repeats left out. After round t of T, ⌊N (1 − (2/π) arccos(t/T))⌋ of
the N positions masked at first are revealed (at least one each round). Default T = 8.

Source: Halton-MaskGIT [arXiv 2503.17076], which takes bases 2 and 3 over the rows and columns of an
image; on a line base 2 is enough. The order looks at no score, so the denoiser is asked only at the
chosen positions. Public code can also shuffle the order once per image; ours is the plain one.
"""

from dataclasses import dataclass
from math import pi
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import ROUNDS, whole


@SAMPLERS.register("halton")
@dataclass(frozen=True)
class Halton(UnmaskingPolicy):
    """Van der Corput order with an arccos schedule of counts over `steps` rounds."""

    steps: int = 8
    placed: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"steps": t} for t in (2, 4, 8, 16))

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)

    def init(self, canvas: Canvas) -> State:
        """How many were masked at first, and the rounds since."""
        total = canvas.masked.sum(1)
        return {"total": total, "done": torch.zeros_like(total)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """As many as the schedule says, in the fixed order."""
        done = state["done"] + 1
        share = 1 - torch.acos((done.to(torch.float64) / self.steps).clamp(max=1.0)) * (2 / pi)
        revealed = (state["total"] * share).floor().to(torch.int64)
        count = (view.masked.sum(1) - state["total"] + revealed).clamp(min=1)
        rank = self.ranks(view.span).to(view.place.device)[view.place].to(torch.float64)
        return view.lowest(rank, count), state | {"done": done}

    @staticmethod
    def ranks(span: int) -> Int[Tensor, " span"]:
        """The place of every position in the van der Corput order of `span`."""
        order: dict[int, None] = {}
        bits = span.bit_length() + 1
        for j in [*range(1, 1 << bits), 0]:
            order.setdefault(span * int(f"{j:0{bits}b}"[::-1], 2) >> bits)
        return torch.tensor(list(order)).argsort()
