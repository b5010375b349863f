"""ReMDM: the reverse process, with revealed tokens masked again on a coin.

In the step from t to s (T equal ones, α_t = 1 − t the share revealed), with
σ_max = min(1, (1 − α_s)/α_t), a revealed position is remasked with probability σ_i and a masked one
unmasks with probability (α_s − (1 − σ_i) α_t)/(1 − α_t); the share revealed stays α. By `kind`:

    cap      σ = min(η, σ_max)                           η = .008
    rescale  σ = η σ_max                                 η = .015
    conf     σ_i = σ_max · softmax_i(−p_i(x_i) when revealed), 0 where masked (η is not used)
    loop     α rises to α_on = .9 at t_on = .55, stays until t_off = .05, then rises to 1;
             σ = min(η, σ_max) while it stays, else 0     η = .02
    fb       σ = min((α_s − α_t)/α_t, σ_max): the forward–backward corrector, which takes back in
             expectation as many tokens as a step without remasking reveals (η is not used)

Default cap, 16 steps. Source: ReMDM [arXiv 2503.00307]. The public code draws with top-p .9,
dropping the token that crosses (Draw(top_p_strict=.9)), and calls in every step; a sequence with
nothing masked is not charged here. In `loop` the step that crosses t_on is clipped there, α_s =
α_on, and the one that crosses t_off reaches its α_s; the public code (f830d65) follows the first
slope past t_on for that step, holds α_on in the other, and does not cap η by σ_max. Given tokens
take no part, neither in coins nor in the softmax. fb is the plain corrector of discrete diffusion
[arXiv 2407.21243] in the form of the public ReMDM code (kuleshov-group/remdm f830d65); there σ is
not bounded by σ_max, which differs in the last step alone, and what that leaves masked becomes an
argmax.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import ROUNDS, one_of, real, whole
from maskwalk.kernels.rows import keep_rows

ETA = {"cap": 0.008, "rescale": 0.015, "conf": 1.0, "loop": 0.02, "fb": 1.0}
T_ON, T_OFF, ALPHA_ON = 0.55, 0.05, 0.9


@SAMPLERS.register("remdm")
@dataclass(frozen=True)
class Remdm(Sampler):
    """Remasks: MDLM's reverse process that takes tokens back, in five kinds."""

    kind: str = "cap"
    steps: int = 16
    eta: float | None = None
    remasks: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"kind": "cap", "steps": steps} for steps in (8, 16, 32)),
        *({"kind": kind, "steps": 16} for kind in ("rescale", "conf", "loop", "fb")),
    )

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ETA)
        whole("steps", self.steps, 1, ROUNDS)
        if self.eta is not None:
            real("eta", self.eta, 0.0, 1.0)

    def init(self, canvas: Canvas) -> State:
        """The probability each token had when it was revealed, and the steps since."""
        done = torch.zeros_like(canvas.tokens[:, 0])
        return {"p": torch.zeros_like(canvas.tokens, dtype=torch.float64), "done": done}

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """At the end of time: a complete sequence may lose tokens again before."""
        return canvas.given.all(1) | (canvas.state["done"] >= self.steps)

    def max_rounds(self, length: int) -> int:
        """The steps."""
        return self.steps

    def alpha(self, t: Float64[Tensor, "batch 1"]) -> Float64[Tensor, "batch 1"]:
        """The share revealed at time t."""
        if self.kind != "loop":
            return 1 - t
        early, late = (1 - t) * ALPHA_ON / (1 - T_ON), 1 - t * (1 - ALPHA_ON) / T_OFF
        return torch.where(t >= T_ON, early, torch.where(t >= T_OFF, ALPHA_ON, late))

    def sigma(
        self, canvas: Canvas, t: Float64[Tensor, "batch 1"], s: Float64[Tensor, "batch 1"]
    ) -> Float64[Tensor, "batch length"]:
        """The probability to remask, at every position."""
        most = ((1 - self.alpha(s)) / self.alpha(t).clamp(min=1e-300)).clamp(max=1.0)
        eta = ETA[self.kind] if self.eta is None else self.eta
        p = canvas.state["p"]
        if self.kind == "conf":
            weight = torch.where(canvas.masked | canvas.given, 0.0, (-p).exp())
            return most * weight / weight.sum(1, keepdim=True).clamp(min=1e-300)
        if self.kind == "rescale":
            return (eta * most).expand_as(p)
        if self.kind == "fb":
            rise = (self.alpha(s) - self.alpha(t)) / self.alpha(t).clamp(min=1e-300)
            return torch.minimum(rise, most).expand_as(p)
        coin = most.clamp(max=eta)
        if self.kind == "loop":
            coin = torch.where((t > T_OFF) & (t <= T_ON), coin, 0.0)
        return coin.expand_as(p)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One coin a position, then tokens where it unmasks."""
        done = canvas.state["done"][:, None].to(torch.float64)
        t, s = 1 - done / self.steps, (self.steps - done - 1) / self.steps
        now, then, sigma = self.alpha(t), self.alpha(s), self.sigma(canvas, t, s)
        u = rng.uniform()
        unmask = torch.where(now < 1, (then - (1 - sigma) * now) / (1 - now), 1.0)
        reveal_mask = canvas.masked & (u < unmask)
        hidden = ~canvas.masked & ~canvas.given & (u < sigma)
        log_probs = keep_rows(denoise(canvas.tokens, canvas.masked), reveal_mask[canvas.masked])
        tokens = rng.draw(log_probs, reveal_mask)
        drawn = log_probs.gather(1, tokens[:, None])[:, 0].exp().to(torch.float64)
        p = canvas.state["p"].masked_scatter(reveal_mask, drawn)
        state = {"p": p, "done": canvas.state["done"] + 1}
        after = canvas.reveal(reveal_mask, tokens, state)
        return replace(after, tokens=after.tokens.masked_fill(hidden, canvas.mask_id))
