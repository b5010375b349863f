"""P2 (path planning): every token is on trial in every round.

Round k of T draws x_i ~ p_i at all masked positions and gives every position that was not given a
score: log p_i(x_i), times η where it was revealed already. The ⌊N (1 − κ)⌋ lowest, κ = (k+1)/T and
N the positions not given, are masked; the rest are kept. η > 1 takes more back, η = 0 nothing.
Defaults η = 1, T = 8.

A revealed token's p_i is the one it was drawn from. `rescore=True` asks again, two calls more: even
and odd positions given all others, so a token that no longer fits is found out.

Source: P2 [arXiv 2502.03540]. The public code reads a network's output *at* revealed positions (one
call), which only a network trained without carry-over answers; a true posterior says 1 there, and
then nothing is ever taken back. Its score at temperature 1 is the log-probability of the draw under
logits with the Gumbel noise still on them, and scores equal to the bar are kept; here the
score is log p itself and ties are as decode was told. A separate planner is not offered.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from maskwalk.decoding.canvas import INF, Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import ROUNDS, real, whole
from maskwalk.samplers.parts.support import support


@SAMPLERS.register("p2")
@dataclass(frozen=True)
class P2(Sampler):
    """Draw first, remasks: masks the lowest log p(x) of all, revealed or not."""

    eta: float = 1.0
    steps: int = 8
    rescore: bool = False
    remasks: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"steps": steps} for steps in (4, 8, 24)),
        {"steps": 8, "eta": 2.0},
        {"steps": 6, "rescore": True},
    )

    def __post_init__(self) -> None:
        real("eta", self.eta, 0.0)
        whole("steps", self.steps, 1, ROUNDS)

    @property
    def asks_elsewhere(self) -> bool:
        """Where it asks again about what is revealed."""
        return self.rescore

    def init(self, canvas: Canvas) -> State:
        """log p of every token when it was drawn, and the rounds since."""
        done = torch.zeros_like(canvas.tokens[:, 0])
        return {"log_p": torch.zeros_like(canvas.tokens, dtype=torch.float64), "done": done}

    def max_rounds(self, length: int) -> int:
        """The steps."""
        return self.steps

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Draw, score all, mask the lowest."""
        view, masked = View(canvas, denoise, rng), canvas.masked
        log_probs = view.log_marginals
        tokens = rng.draw(log_probs, masked)
        drawn = log_probs.gather(1, tokens[:, None])[:, 0].to(torch.float64)
        log_p = self._revealed(canvas, denoise).masked_scatter(masked, drawn)
        scores = torch.where(masked, log_p, self.eta * log_p.clamp(min=-1e12))
        scores = torch.round(scores / view.score_grid) * view.score_grid
        free = ~canvas.given
        # κ = (done + 1) / steps, in whole numbers: no share of a position is lost to rounding.
        done = canvas.state["done"] + 1
        count = free.sum(1) * (self.steps - done) // self.steps
        hidden = view.lowest_of_all(scores.masked_fill(~free, INF), count)
        new = canvas.tokens.masked_scatter(masked, tokens).masked_fill(hidden, canvas.mask_id)
        return replace(canvas, tokens=new, state={"log_p": log_p, "done": done})

    def _revealed(self, canvas: Canvas, denoise: Denoiser) -> Float64[Tensor, "batch length"]:
        """log p of the revealed tokens: remembered, or asked for again."""
        if not self.rescore:
            return canvas.state["log_p"]
        return support(canvas, denoise, ~canvas.masked & ~canvas.given)[0]
