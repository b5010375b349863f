"""Order-k bisection: exact for laws of order at most k.

Every maximal masked run of l positions starting at a reveals its middle block of r = min(k, l)
positions, a + (l - r) // 2 onwards, one after another; all runs in parallel. A revealed block of k
neighbours separates what lies left of it from what lies right, so the next runs are independent.
At most k ⌈log₂(l/k + 1)⌉ calls.

Source: the paper, Algorithm 1. Related orders: DUS's binary scheduler, hierarchy decoding in
dInfer, Halton/van der Corput orders.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import whole
from maskwalk.samplers.parts.runs import runs


@SAMPLERS.register("bisection")
@dataclass(frozen=True)
class Bisection(UnmaskingPolicy):
    """Middle block of `order` positions of every masked run, all runs in parallel."""

    order: int = 1
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"order": k} for k in (1, 2, 4, 8))

    def __post_init__(self) -> None:
        whole("order", self.order, 1)

    def init(self, canvas: Canvas) -> State:
        """No plan yet."""
        return {"turn": torch.zeros_like(canvas.tokens)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The next position of every middle block; a new plan where the last one is done."""
        turn = torch.where(view.masked, state["turn"], 0)
        turn = torch.where((turn > 0).any(1, keepdim=True), turn, self._plan(view.masked))
        never = turn.shape[1] + 1
        now = torch.where(turn > 0, turn, never).amin(1, keepdim=True)
        return turn == now, {"turn": turn}

    def _plan(self, masked: Tensor) -> Tensor:
        """1, 2, …, r along the middle block of every masked run, 0 elsewhere."""
        start, size = runs(masked)
        width = size.clamp(max=self.order)
        place = torch.arange(masked.shape[1], device=masked.device)
        turn = place - start - (size - width) // 2 + 1
        return torch.where(masked & (turn >= 1) & (turn <= width), turn, 0)
