"""MaskGIT's schedule: a cosine share stays masked, and the noise on the choice is annealed.

With N positions masked at first and r = k/T after round k of T, ⌊N cos(π r/2)⌋ stay masked, and at
least one is revealed; all of them in the last round. The choice temperature is τ (1 − r).
"""

from math import pi

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, State
from maskwalk.decoding.view import View

ROUNDING = 1e-9  # cos(π/3) is a half, whatever the last digit says


def begun(canvas: Canvas) -> State:
    """How many there are to reveal, and the rounds since."""
    total = canvas.masked.sum(1)
    return {"total": total, "done": torch.zeros_like(total)}


def count_and_heat(
    view: View, state: State, steps: int, temperature: float
) -> tuple[Int[Tensor, " batch"], Float64[Tensor, " batch"], State]:
    """How many positions to reveal now, the choice temperature, and what to remember."""
    done = state["done"] + 1
    share = (done.to(torch.float64) / steps).clamp(max=1.0)
    stay = (state["total"] * torch.cos(share * (pi / 2)) + ROUNDING).floor().to(torch.int64)
    count = (view.masked.sum(1) - stay).clamp(min=1)
    return count, temperature * (1 - share), state | {"done": done}
