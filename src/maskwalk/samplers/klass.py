"""KLASS: reveal where the marginal is sure and has stopped moving.

With c_i = max p_i and d_i^t = KL(p_i^t ‖ p_i^{t−1}), reveal {i : c_i ≥ `conf` and d_i < `kl` in
each of the last `window` rounds}, else argmax c_i. Defaults .9, .01 nats, 2.

Source: KLASS [arXiv 2511.05664]; nats there as well. In the first `window` rounds nothing has a
history, so one position is revealed. A position's last marginals are remembered per sequence (V
numbers each), so it suits small vocabularies; inside blocks(…) every block starts a new history.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real, whole
from maskwalk.samplers.parts.picks import confidences, or_best


@SAMPLERS.register("klass")
@dataclass(frozen=True)
class Klass(UnmaskingPolicy):
    """Sure, and KL to the last round's marginal below `kl` for `window` rounds."""

    conf: float = 0.9
    kl: float = 0.01
    window: int = 2
    ranks_by: ClassVar[str] = "confidence"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"conf": 0.95},
        {"conf": 0.9},
        {"conf": 0.9, "window": 1},
        {"conf": 0.6, "kl": 0.1, "window": 1},
    )

    def __post_init__(self) -> None:
        real("conf", self.conf, 0.0, 1.0)
        real("kl", self.kl, 0.0)
        whole("window", self.window, 1)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def init(self, canvas: Canvas) -> State:
        """No marginals seen yet (the vocabulary's size is not known yet either)."""
        shape = (*canvas.tokens.shape, 1)
        seen = torch.zeros(shape, dtype=torch.float64, device=canvas.tokens.device)
        return {"before": seen, "quiet": torch.zeros_like(canvas.tokens)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """What is sure and quiet, to within the grid; else the surest."""
        now, old = view.log_marginals.to(torch.float64).exp(), state["before"]
        old = old.expand(*old.shape[:2], now.shape[1])
        before = old[view.masked]
        moved = torch.where(now > 0, now * (now.log() - before.log()), 0.0).sum(-1)
        quiet = torch.zeros_like(state["quiet"])
        quiet[view.masked] = torch.where(moved < self.kl, state["quiet"][view.masked] + 1, 0)
        passed = (confidences(view) >= self.conf - view.score_grid / 2) & (quiet >= self.window)
        seen = torch.zeros_like(old, memory_format=torch.contiguous_format)
        seen[view.masked] = now
        return or_best(view, passed), {"before": seen, "quiet": quiet}
