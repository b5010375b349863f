"""PC: position-aware, and calibrated against tokens that are likely everywhere.

Rank positions by e^{−λ i} · min(α, −p_i(x) log f(x)), highest first, with x = argmax p_i, i the
position and f(x) the token's frequency: a frequent token is likely for no particular reason. Reveal
the `block` first. Defaults λ = 0.25 (`decay`; lambda is a word of Python), α = 10, one per round.

Source: PC-Sampler [arXiv 2508.13021], which counts f in a corpus and positions from the end of the
prompt. For a walk f should be how often a walk is at x. The denoiser itself says: f is its mean
marginal over the masked positions in the first round of the sequence, which on an empty canvas is
the expected frequency exactly (the stationary law, if walks start in it); after a prompt it is the
frequency given the prompt. It is one table for the sequence, also inside blocks. Compared as
logarithms, lest e^{−λ i} vanish on long sequences.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real, whole


@SAMPLERS.register("pc")
@dataclass(frozen=True)
class Pc(UnmaskingPolicy):
    """Confidence calibrated by token frequency, sooner to the left."""

    decay: float = 0.25
    alpha: float = 10.0
    block: int = 1
    lasting: ClassVar[tuple[str, ...]] = ("frequency",)
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"block": block} for block in (1, 2, 4, 8)),
        {"decay": 0.0},
    )

    def __post_init__(self) -> None:
        real("decay", self.decay, 0.0)
        real("alpha", self.alpha, 1e-9)
        whole("block", self.block, 1)

    @property
    def reveals_one(self) -> bool:
        """With one per round."""
        return self.block == 1

    @property
    def reads_whole(self) -> bool:
        """Until the frequencies are known."""
        return True

    def init(self, canvas: Canvas) -> State:
        """No frequencies yet (the vocabulary's size is not known yet either)."""
        unknown = torch.full((len(canvas.tokens), 1), -1.0, dtype=torch.float64)
        return {"frequency": unknown.to(canvas.tokens.device)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The `block` highest calibrated confidences."""
        frequency = self._frequency(view.whole, state["frequency"])  # may ask for everything
        probs, row = view.log_marginals.to(torch.float64).exp(), view.masked.nonzero()[:, 0]
        sure, token = probs.max(-1)
        calibrated = -sure * frequency[row, token].clamp(min=1e-300).log()
        decay = self.decay * view.place[view.masked].to(torch.float64)
        value = calibrated.clamp(1e-30, self.alpha).log() - decay
        scores = view.unpack_score(torch.round(-value / view.score_grid) * view.score_grid)
        return view.lowest(scores, self.block), {"frequency": frequency}

    @staticmethod
    def _frequency(
        whole: View, known: Float64[Tensor, "batch _"]
    ) -> Float64[Tensor, "batch vocab"]:
        """The table of each sequence: as it was estimated in its first round."""
        if bool((known >= 0).all()):
            return known
        probs, row = whole.log_marginals.to(torch.float64).exp(), whole.masked.nonzero()[:, 0]
        mean = probs.new_zeros((len(known), probs.shape[1]))
        mean.index_add_(0, row, probs / whole.masked.sum(1)[row][:, None])
        return torch.where(known < 0, mean, known)
