"""WINO: reveal wide at a low threshold, take back what the others do not support.

A round draws x_i ~ p_i at all m masked positions and accepts those with p_i(x_i) > `tau`: at most
min(max(⌊0.7 m⌋, 5), 20), the likeliest, and at least the likeliest. If it accepts more than one, it
also looks at the tokens of earlier rounds, each given all the others of the canvas before this
round (leave one out), and masks those with p_i(x_i) < `back`: fewer than the round before accepted,
the least likely, so every round gains one. Defaults τ = 0.6, back = 0.9.

`verify="each"` asks for every such token by itself, a call each; "halves" masks even and odd
positions together, two calls.

Source: WINO [arXiv 2507.18578]; Feng-Hong/WINO-DLLM 9549a1d, decoding_wino (thresholds per task:
.6 and .9 by default), in blocks: blocks(size=128, inner=wino()). The public code verifies in the
same call, by masked copies of the block behind the sequence with an attention mask of their own,
which a plain denoiser has not; the copies see each other's masks as well as the tokens. Tokens
are argmaxes there by default; one sequence at a time.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import INF, Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import one_of, real
from maskwalk.samplers.parts.support import support

SHARE, LEAST, MOST = 7, 5, 20  # tenths of the masked positions a round may accept, and limits
FIRST = 30  # what counts as accepted before the first round


@SAMPLERS.register("wino")
@dataclass(frozen=True)
class Wino(Sampler):
    """Draw first, remasks: accepts draws above tau, masks tokens the others put below back."""

    tau: float = 0.6
    back: float = 0.9
    verify: str = "each"
    remasks: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"tau": 0.2},
        {"tau": 0.25},
        {"tau": 0.2, "back": 0.5, "verify": "halves"},
    )

    def __post_init__(self) -> None:
        real("tau", self.tau, 0.0, 1.0)
        real("back", self.back, 0.0, 1.0)
        one_of("verify", self.verify, ("each", "halves"))

    @property
    def asks_elsewhere(self) -> bool:
        """Tokens given all others."""
        return True

    def init(self, canvas: Canvas) -> State:
        """How many the round before accepted."""
        return {"last": torch.full_like(canvas.tokens[:, 0], FIRST)}

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Draw and accept, then look back."""
        view, masked, last = View(canvas, denoise, rng), canvas.masked, canvas.state["last"]
        drawn = rng.draw(view.log_marginals, masked)
        likely = view.unpack(view.scored.gather(1, drawn[:, None])[:, 0].exp())
        likely = torch.round(likely / view.score_grid) * view.score_grid
        passed = masked & (likely > self.tau + view.score_grid / 2)
        most = (masked.sum(1) * SHARE // 10).clamp(LEAST, MOST)
        count = torch.minimum(passed.sum(1), most).clamp(min=1)
        accepted = view.lowest(-likely, count)
        # Nothing may be taken back after one accepted token, nor while one is accepted now.
        look = ~masked & ~canvas.given & ((count > 1) & (last > 1))[:, None]
        taken = self._poor(view, canvas, denoise, look, last)
        tokens = canvas.tokens.masked_scatter(accepted, drawn[accepted[masked]])
        return replace(
            canvas, tokens=tokens.masked_fill(taken, canvas.mask_id), state={"last": count}
        )

    def _poor(
        self, view: View, canvas: Canvas, denoise: Denoiser, look: Tensor, last: Tensor
    ) -> Bool[Tensor, "batch length"]:
        """The tokens to take back, of those looked at: fewer than `last` in each row."""
        if not bool(look.any()):
            return torch.zeros_like(look)
        ask = _each if self.verify == "each" else support
        own = torch.round(ask(canvas, denoise, look)[0].exp() / view.score_grid) * view.score_grid
        poor = look & (own < self.back - view.score_grid / 2)
        count = torch.minimum(poor.sum(1), last - 1)
        return view.lowest_of_all(own.masked_fill(~look, INF), count)


def _each(
    canvas: Canvas, denoise: Denoiser, at: Bool[Tensor, "batch length"]
) -> tuple[Float64[Tensor, "batch length"], None]:
    """log p of every token in `at` given all others, a call each; 0 elsewhere."""
    own = torch.zeros_like(canvas.tokens, dtype=torch.float64)
    turn = at.cumsum(1)
    for number in range(1, int(turn.max()) + 1):
        one = at & (turn == number)
        log_probs = denoise(canvas.tokens.masked_fill(one, canvas.mask_id), one)
        own[one] = log_probs.gather(1, canvas.tokens[one][:, None])[:, 0].to(own)
    return own, None
