"""Ancestral: the reverse process of masked diffusion in `steps` steps of time.

Time runs t_k = 1 − k/T down to 0; in the step from t to s every masked position unmasks, on its own
coin, with probability (t − s)/t, and all that unmask are drawn at once. As T → ∞ no two unmask
together and it is random one at a time; `first_hitting` is that limit. Default T = 16.

`cached`: the marginals are reused while the *sequence* has not changed. They are needed only when
something unmasks, so a step without does not call: the same count. Without it every step calls.
`finish="argmax"`: time stops at `eps` (1e-5) and a last call fills what is left with argmax p_i.

Source: MDLM [arXiv 2406.07524]. Its cache asks whether the whole *batch* has changed, so its counts
grow with the batch size. Its argmax finish, on by default there, is a bias of the order of eps·L.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams
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
        return FACTORISED if self.finish == "draw" else SHAPED

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)
        one_of("finish", self.finish, ("draw", "argmax"))
        real("eps", self.eps, 0.0, 0.5)

    def max_rounds(self, length: int) -> int:
        """The steps, and one to finish."""
        return self.steps + 1

    def time(self, step: int) -> float:
        """t after `step` steps."""
        end = self.eps if self.finish == "argmax" else 0.0
        return 1 - step * (1 - end) / self.steps if step < self.steps else end

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Coins, then tokens where they fell right; past the last step, argmaxes."""
        if canvas.round == self.steps:
            log_probs = denoise(canvas.tokens, canvas.masked)
            tokens = log_probs.argmax(-1)
            rng.note(canvas.masked, log_probs, tokens)
            return canvas.reveal(canvas.masked, tokens)
        t, s = self.time(canvas.round), self.time(canvas.round + 1)
        chosen: Bool[Tensor, "batch length"] = canvas.masked & (rng.uniform() < (t - s) / t)
        log_probs = denoise(canvas.tokens, chosen if self.cached else canvas.masked)
        if not self.cached:
            log_probs = keep_rows(log_probs, chosen[canvas.masked])
        return canvas.reveal(chosen, rng.draw(log_probs, chosen))
