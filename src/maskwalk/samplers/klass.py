"""KLASS: reveal where the marginal is sure and has stopped moving.

With c_i = max p_i and d_i^t = KL(p_i^t ‖ p_i^{t−1}), reveal {i : c_i ≥ `conf` and d_i < `kl` in
each of the last `window` rounds}, else argmax c_i. Defaults .9, .01 nats, 2.

Source: KLASS [arXiv 2511.05664]; nats there as well. In the first `window` rounds nothing has a
history, so one position is revealed. Every masked position of the sequence has its history, also
inside blocks(…), where it goes on from one block to the next; a block begins with `window` − 1
rounds of one position (as shkim0116/KLASS ad87ecb does; there c_i > `conf`, and all that is neither
sure nor quiet comes k at a time, k from a number of steps). A position's last marginals are
remembered (V numbers each), so it suits small vocabularies.
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
    lasting: ClassVar[tuple[str, ...]] = ("before", "quiet")
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

    @property
    def reads_whole(self) -> bool:
        """Every masked position has a history."""
        return True

    def init(self, canvas: Canvas) -> State:
        """No marginals seen yet (the vocabulary's size is not known yet either)."""
        shape = (*canvas.tokens.shape, 1)
        seen = torch.zeros(shape, dtype=torch.float64, device=canvas.tokens.device)
        quiet = torch.zeros_like(canvas.tokens)
        return {"before": seen, "quiet": quiet, "done": torch.zeros_like(canvas.tokens[:, 0])}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """What is sure and quiet, to within the grid; else the surest."""
        masked, old = view.whole.masked, state["before"]
        now = view.whole.log_marginals.to(torch.float64).exp()
        old = old.expand(*old.shape[:2], now.shape[1])
        before = old[masked]
        moved = torch.where(now > 0, now * (now.log() - before.log()), 0.0).sum(-1)
        quiet = torch.zeros_like(state["quiet"])
        quiet[masked] = torch.where(moved < self.kl, state["quiet"][masked] + 1, 0)
        still = (quiet >= self.window) & (state["done"] >= self.window - 1)[:, None]
        passed = still & (confidences(view) >= self.conf - view.score_grid / 2)
        seen = torch.zeros_like(old, memory_format=torch.contiguous_format)
        seen[masked] = now
        return or_best(view, passed), {"before": seen, "quiet": quiet, "done": state["done"] + 1}
