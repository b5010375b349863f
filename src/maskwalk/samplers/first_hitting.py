"""First hitting: the reverse process in continuous time, from one unmasking to the next.

With n positions masked at time t, each has its own time to unmask, uniform on (0, t); the latest of
them, τ = t · max_i u_i (distributed as t·u^{1/n}), is the next event, and the position that has it
is revealed. One call per token, no error of discretisation: `ancestral(steps)` as steps → ∞.

Source: first-hitting sampler [arXiv 2409.02908]. τ matters only to a denoiser that is told the
time; ours are not, so the law is exactly that of random one at a time, `random(block=1)`. Here
every sequence has its own clock, whatever the others have masked.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View


@SAMPLERS.register("first_hitting")
@dataclass(frozen=True)
class FirstHitting(UnmaskingPolicy):
    """The reverse process in continuous time, one unmasking after another."""

    @property
    def reveals_one(self) -> bool:
        """Always."""
        return True

    def first_picks(self, length: int) -> range:
        """Any position, always."""
        return range(length)

    def init(self, canvas: Canvas) -> State:
        """Time starts at 1."""
        ones = torch.ones(len(canvas.tokens), dtype=torch.float64, device=canvas.tokens.device)
        return {"time": ones}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The masked position whose time comes first."""
        latest, at = rng.uniform().masked_fill(~view.masked, -1.0).max(1, keepdim=True)
        chosen = torch.zeros_like(view.masked).scatter(1, at, True)
        return chosen, {"time": state["time"] * latest[:, 0]}
