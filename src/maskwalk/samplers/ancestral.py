"""Ancestral: the reverse process of masked diffusion in `steps` steps of time.

Time runs t_k = 1 − k/T down to 0; in the step from t to s every masked position unmasks, on its own
coin, with probability (t − s)/t, and all that unmask are drawn at once. As T → ∞ no two unmask
together and it is random one at a time; `first_hitting` is that limit. Default T = 16.

`cached`: the marginals are reused while the *sequence* has not changed. They are needed only when
something unmasks, so a step without does not call: the same count. Without it every step calls.
`finish="argmax"`: time stops at `eps` (1e-5) and a last call fills what is left with argmax p_i.
`finish="last"`: time runs to `eps` as well, and the last step reveals all that is left.

Source: MDLM [arXiv 2406.07524]. Its cache asks whether the whole *batch* has changed, so its counts
grow with the batch size. Its argmax finish, on by default there, is a bias of the order of eps·L.
`finish="last"` with eps = 1e-3 is Dream's [arXiv 2508.15487] alg="origin".
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.kinds import FACTORISED, SHAPED
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import ROUNDS, one_of, real, whole
from maskwalk.kernels.rows import keep_rows


@SAMPLERS.register("ancestral")
@dataclass(frozen=True)
class Ancestral(Sampler):
    """MDLM's reverse process: independent coins in `steps` steps of time."""

    steps: int = 16
    cached: bool = False
    finish: str = "draw"
    eps: float = 1e-5
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"steps": steps, "cached": True} for steps in (2, 4, 8, 16, 32)
    )

    @property
    def law_kind(self) -> str:
        """Factorised: coins, then draws; the argmax finish is a truncation."""
        return SHAPED if self.finish == "argmax" else FACTORISED

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)
        one_of("finish", self.finish, ("draw", "argmax", "last"))
        real("eps", self.eps, 0.0, 0.5)

    def init(self, canvas: Canvas) -> State:
        """The steps since the beginning of time."""
        return {"done": torch.zeros_like(canvas.tokens[:, 0])}

    def max_rounds(self, length: int) -> int:
        """The steps, and one to finish."""
        return self.steps + 1

    def time(self, done: Int[Tensor, " batch"]) -> Float64[Tensor, "batch 1"]:
        """t after `done` steps."""
        end = 0.0 if self.finish == "draw" else self.eps
        t = 1 - done[:, None].to(torch.float64) * (1 - end) / self.steps
        return torch.where(done[:, None] < self.steps, t, 0.0 if self.finish == "last" else end)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Coins, then tokens where they fell right; past the last step, argmaxes."""
        done = canvas.state["done"]
        t, s = self.time(done), self.time(done + 1)
        over = (done == self.steps)[:, None] & canvas.masked  # the argmax finish
        chosen = canvas.masked & (over | (rng.uniform() < (t - s) / t))
        log_probs = denoise(canvas.tokens, chosen if self.cached else canvas.masked)
        if not self.cached:
            log_probs = keep_rows(log_probs, chosen[canvas.masked])
        tokens = rng.draw(log_probs, chosen)
        if self.finish == "argmax":
            tokens = torch.where(over[chosen], log_probs.argmax(-1), tokens)
            rng.note(chosen, log_probs, tokens)
        return canvas.reveal(chosen, tokens, {"done": done + 1})
