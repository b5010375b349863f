"""PUNT: draw everywhere, keep what the other draws do not move, found by halving.

A round draws x_i ~ p_i at all m masked positions and ranks them by `score`, the best first: ranks
0..m−1, written with ⌈log₂ m⌉ binary digits. From the first digit to the last, the positions still
in with digit 0 are shown to the denoiser with their draws (anchors), and those with digit 1 are
asked for (tests). With q_i the answer, a test stays in if KL(q_i ‖ p_i) ≤ `eps` nats. What is left
at the end is revealed with its draws; the best position always is. Of any two positions left the
better one was an anchor when the other was tested. Defaults: eps 0.01, score "confidence".

A round takes 1 + ⌈log₂ m⌉ calls, fewer where a digit has no tests left; one call if m = 1.

Source: PUNT [arXiv 2510.21961]: independence tests by recursive halving. Its abstract was at hand,
not its text, and no public code was found; all halves of a level in one call, the direction of the
divergence and the default are our reading. The mean of KL(q ‖ p) over the anchors' draws is their
mutual information, and it is finite wherever the anchors are possible. Whether a position stays
depends on what was drawn at others, so the law is no product of marginals: draw first. With a
perfect denoiser and eps = 0 it is the law itself on the walks tried by enumeration.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.scores import SCORES
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import one_of, real
from maskwalk.kernels.rows import by_rows


@SAMPLERS.register("punt")
@dataclass(frozen=True)
class Punt(Sampler):
    """Draw first: keeps the draws that pass independence tests, found by halving."""

    eps: float = 0.01
    score: str = "confidence"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"eps": eps} for eps in (0.001, 0.03, 0.3))

    def __post_init__(self) -> None:
        real("eps", self.eps, 0.0)
        one_of("score", self.score, list(SCORES))

    @property
    def asks_elsewhere(self) -> bool:
        """The marginals with half of the picks revealed."""
        return True

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Draw, test from the first digit to the last, keep what is left."""
        view = View(canvas, denoise, rng)
        alone, masked = view.log_marginals, view.masked
        drawn = canvas.tokens.masked_scatter(masked, rng.draw(alone, masked))
        rank, kept = view.ranks(view.score(self.score)), masked
        for digit in reversed(range((int(masked.sum(1).max()) - 1).bit_length())):
            one = (rank >> digit) % 2 == 1
            tests, anchors = kept & one, kept & ~one
            if not bool(tests.any()):
                continue
            shown = torch.where(anchors, drawn, canvas.tokens)
            moved = torch.zeros_like(masked, dtype=torch.float64)
            moved[tests] = divergence(denoise(shown, tests), alone[tests[masked]])
            kept = kept & (moved <= self.eps + view.score_grid / 2)
        return canvas.reveal(kept, drawn[kept])


def divergence(
    log_q: Float[Tensor, "n vocab"], log_p: Float[Tensor, "n vocab"]
) -> Float64[Tensor, " n"]:
    """KL(q ‖ p) in nats, row by row; infinite where q is possible and p is not."""
    return by_rows(_divergence, log_q, log_p)


def _divergence(
    log_q: Float[Tensor, "n vocab"], log_p: Float[Tensor, "n vocab"]
) -> Float64[Tensor, " n"]:
    log_q, log_p = log_q.to(torch.float64), log_p.to(torch.float64)
    q = log_q.exp()
    return torch.where(q > 0, q * (log_q - log_p), 0.0).sum(-1)
