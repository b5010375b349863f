"""Score-guided order-k bisection: balanced like bisection, led by a score.

In every maximal masked run of l positions the pivot is the lowest-scored position of the centred
⌈l/2⌉; the separator then grows k - 1 times by the lower-scored of its two frontier neighbours in
the run. All runs move together, and a level ends when every separator is grown or its run is full.
At most k (1 + ⌈log_{4/3}(l/k)⌉) calls; exact for laws of order at most k.

Source: the paper, Algorithm 2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.scores import SCORES
from maskwalk.decoding.view import View
from maskwalk.errors import one_of, whole
from maskwalk.samplers.parts.runs import runs


@SAMPLERS.register("guided_bisection")
@dataclass(frozen=True)
class GuidedBisection(UnmaskingPolicy):
    """Lowest score in the centre of every masked run, grown to `order` positions."""

    order: int = 1
    score: str = "entropy"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"order": k} for k in (1, 2, 4, 8)),
        {"score": "confidence"},
        {"score": "margin"},
    )

    @property
    def ranks_by(self) -> str:  # type: ignore[override]
        """The score it is led by."""
        return self.score

    def __post_init__(self) -> None:
        whole("order", self.order, 1)
        one_of("score", self.score, SCORES)

    def first_picks(self, length: int) -> range:
        """The centred half."""
        half = (length + 1) // 2
        return range((length - half) // 2, (length - half) // 2 + half)

    def init(self, canvas: Canvas) -> State:
        """`run`: where each position's run began when the level did (-1: revealed before it)."""
        batch = len(canvas.tokens)
        grown = torch.zeros(batch, dtype=torch.int64, device=canvas.tokens.device)
        return {"run": torch.full_like(canvas.tokens, -1), "grown": grown}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """A frontier neighbour of every separator, or a new pivot where the level is over."""
        return self._led(view, state, view.score(self.score))

    def _led(
        self, view: View, state: State, scores: Float64[Tensor, "batch length"]
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The choice by these scores, the lowest first."""
        run, grown = state["run"], state["grown"]
        frontier = self._frontier(view.masked, run)
        growing = ((grown > 0) & (grown < self.order) & frontier.any(1))[:, None]
        start, centre = self._centre(view.masked)
        run = torch.where(growing, run, torch.where(view.masked, start, -1))
        candidates = torch.where(growing, frontier, centre)
        chosen = view.lowest_of_each(scores, run.clamp(min=0), candidates)
        grown = torch.where(growing[:, 0], grown + 1, 1)
        return chosen, {"run": run, "grown": grown}

    @staticmethod
    def _frontier(masked: Tensor, run: Tensor) -> Tensor:
        """Masked positions next to a position of the same run revealed in this level."""
        separator = torch.where(masked, -2, run)  # its run where revealed in this level
        left = F.pad(separator[:, :-1], (1, 0), value=-2)
        right = F.pad(separator[:, 1:], (0, 1), value=-2)
        return masked & (run >= 0) & ((left == run) | (right == run))

    @staticmethod
    def _centre(masked: Tensor) -> tuple[Tensor, Tensor]:
        """Each position's run, and whether it lies in the centred half of it."""
        start, size = runs(masked)
        half = (size + 1) // 2
        offset = torch.arange(masked.shape[1], device=masked.device) - start - (size - half) // 2
        return start, masked & (offset >= 0) & (offset < half)
