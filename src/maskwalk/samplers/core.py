"""CORE: now and then, tokens that do not withstand a masked context are revised.

N positions are revealed in T steps (⌊N/T⌋ the most confident, one more in the first N mod T; at
most N steps). In step t = 1 … T with t a multiple of `every` and start ≤ t/T < end, before that
step's tokens are revealed: take the S of `candidates` revealed tokens with the smallest margin
(first minus second probability), mask them all, and ask; the instability of x_i, i ∈ S, is
−log p_i(x_i | S masked), and the `revise` most unstable tokens are taken back. redraw=True draws
them anew from that answer at once; redraw=False leaves them masked for the steps to come, the last
of which reveals all that is left. Given tokens take no part.

Defaults T = 16, every 2nd step of the middle half (start .25, end .75), 8 candidates, 1 revised: in
proportion those of the paper (128 steps, every 8th, 32 candidates). A revision is one call.

Source: CORE [arXiv 2602.04096]; read in an independent implementation, the authors' own was not at
hand. There the margins come from the network's output *at* revealed positions, which only a network
trained without carry-over answers; here a token's margin is that of the marginal it was drawn from.
The base rule there is LLaDA's with argmax tokens; here it chooses before it draws, so nothing but
the revision departs from the marginals. Kin: Saber [arXiv 2510.18165], fill and refine
[arXiv 2510.05090]; `corrected` looks back once, at the end.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from maskwalk.decoding.canvas import INF, Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import ROUNDS, real, whole
from maskwalk.samplers.parts.counts import spread_evenly


@SAMPLERS.register("core")
@dataclass(frozen=True)
class Core(Sampler):
    """Confidence in steps, with revealed tokens tested under a masked context and revised."""

    steps: int = 16
    every: int = 2
    candidates: int = 8
    revise: int = 1
    start: float = 0.25
    end: float = 0.75
    redraw: bool = True
    remasks: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"steps": 8},
        {"steps": 16},
        {"steps": 24},
        {"steps": 16, "revise": 4},
        {"steps": 16, "start": 0.0, "end": 1.0, "every": 1, "redraw": False},
    )

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)
        for name in ("every", "candidates", "revise"):
            whole(name, getattr(self, name), 1)
        real("start", self.start, 0.0, 1.0)
        real("end", self.end, 0.0, 1.0)

    @property
    def asks_elsewhere(self) -> bool:
        """Its tokens under a masked context."""
        return True

    def init(self, canvas: Canvas) -> State:
        """How many there are to reveal, the steps since, and the margin of every token."""
        total = canvas.masked.sum(1)
        margin = torch.zeros_like(canvas.tokens, dtype=torch.float64)
        return {"total": total, "done": torch.zeros_like(total), "margin": margin}

    def max_rounds(self, length: int) -> int:
        """The steps."""
        return self.steps

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Choose what to reveal; test and revise what is revealed; draw."""
        view, state = View(canvas, denoise, rng), canvas.state
        steps = state["total"].clamp(max=self.steps)
        now = state["done"] + 1
        count = spread_evenly(state["total"], state["done"], self.steps)
        count = torch.where(now == steps, view.masked.sum(1), count)
        chosen = view.lowest(view.score("confidence"), count)
        log_p = view.take_marginals(chosen)
        after = canvas.reveal(chosen, rng.draw(log_p, chosen))
        margin = state["margin"].masked_scatter(chosen, _margin(log_p))
        share = now.to(torch.float64) / steps
        due = (now % self.every == 0) & (self.start <= share) & (share < self.end) & (now < steps)
        if bool(due.any()):
            after, margin = self._revise(canvas, after, margin, due, denoise, rng)
        return replace(after, state={"total": state["total"], "done": now, "margin": margin})

    def _revise(
        self,
        canvas: Canvas,
        after: Canvas,
        margin: Float64[Tensor, "batch length"],
        due: Bool[Tensor, " batch"],
        denoise: Denoiser,
        rng: RoundStreams,
    ) -> tuple[Canvas, Float64[Tensor, "batch length"]]:
        """`after` with the most unstable tokens of `canvas` drawn anew, or masked."""
        view = View(canvas, denoise, rng)
        able = ~canvas.masked & ~canvas.given & due[:, None]
        weak = torch.round(margin / view.score_grid).masked_fill(~able, INF)
        tested = view.lowest_of_all(weak, self.candidates)
        log_p = denoise(canvas.tokens.masked_fill(tested, canvas.mask_id), tested)
        own = log_p.gather(1, canvas.tokens[tested][:, None])[:, 0].to(torch.float64)
        support = torch.round(own.clamp(min=-1e12) / view.score_grid)
        support = torch.full_like(weak, INF).masked_scatter(tested, support)
        brittle = view.lowest_of_all(support, self.revise)
        if not self.redraw:
            return replace(after, tokens=after.tokens.masked_fill(brittle, canvas.mask_id)), margin
        again = log_p[brittle[tested]]
        after = after.reveal(brittle, rng.draw(again, brittle))
        return after, margin.masked_scatter(brittle, _margin(again))


def _margin(log_p: Float[Tensor, "n vocab"]) -> Float64[Tensor, " n"]:
    """The largest probability minus the second."""
    top = log_p.topk(min(2, log_p.shape[1]), -1).values.to(torch.float64).exp()
    return top[:, 0] - top[:, 1:].sum(-1)
