"""MaskGIT: draw everywhere, keep the likeliest draws by noisy log-confidences, cosine counts.

Round k of T draws x_i ~ p_i at all masked positions, and with r = k/T keeps those with the largest

    log p_i(x_i) + τ (1 − r) g_i,   g_i standard Gumbel,

all but ⌊N cos(π r/2)⌋ of the N positions masked at first, at least one; the last round keeps all.
The noise is large at first and gone at the end. Defaults T = 12, τ = 4.5.

Source: MaskGIT [arXiv 2202.04200]; google-research/maskgit 1db2359, parallel_decode.py and the
configuration of class-conditional samples. There one position stays masked until the last round,
and is drawn and thrown away until then; here it is revealed when it is the only one left, which
saves calls and leaves the law alone. The noise is on the choice of positions only. Drawing first
and keeping the likely is a temperature in disguise: see `moment`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import ROUNDS, real, whole
from maskwalk.samplers.parts.cosine import begun, count_and_heat
from maskwalk.samplers.parts.views import gumbel
from maskwalk.streams import Purpose


@SAMPLERS.register("maskgit")
@dataclass(frozen=True)
class Maskgit(Sampler):
    """Draw first: keeps the likeliest draws by noisy log p(x), over `steps` cosine rounds."""

    steps: int = 12
    temperature: float = 4.5
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"steps": steps} for steps in (4, 8, 16)),
        {"steps": 8, "temperature": 0.0},
    )

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)
        real("temperature", self.temperature, 0.0)

    def init(self, canvas: Canvas) -> State:
        """How many there are to reveal, and the rounds since."""
        return begun(canvas)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One call: draw everywhere, keep the likeliest by noisy scores."""
        view = View(canvas, denoise, rng)
        tokens = rng.draw(view.log_marginals, view.masked)
        log_p = view.scored.gather(1, tokens[:, None])[:, 0].to(torch.float64).clamp(min=-1e12)
        scores = view.unpack(-torch.round(log_p / view.score_grid) * view.score_grid)
        count, heat, state = count_and_heat(view, canvas.state, self.steps, self.temperature)
        noise = heat[:, None] * gumbel(rng.uniform(Purpose.NOISE))
        kept = view.lowest(scores - noise, count)
        return canvas.reveal(kept, tokens[kept[view.masked]], state)
