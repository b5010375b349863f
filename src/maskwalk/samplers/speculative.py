"""Speculative: draft k tokens from one call, verify them as one at a time would have drawn them.

Take the next k masked positions of an order. Draft x_j ~ p_j for all from the marginals p of the
canvas; ask for the sequential conditionals q_j = p(· | canvas, x_1 … x_{j−1}), all in parallel. In
turn, accept x_j with probability min(1, q_j(x_j)/p_j(x_j)); at the first refusal draw from the
positive part (q_j − p_j)⁺, normalised, and forget the rest. Each token then has exactly the law
q_j: the result is that of one at a time in that order, for any denoiser. q_1 = p_1 needs no
question.

`draft` is the order, "left_to_right" or "random" (a new random order each round); default k = 4. A
round's depth is two (draft, then all verifications side by side), so `rounds` × 2 is the depth and
`calls` counts every query: k a round, of which at least two tokens come.

Source: speculative sampling [arXiv 2302.01318]; drafted and verified by one model in any order:
any-subset speculative decoding [arXiv 2504.20456], which verifies in one call with causal
attention; a masked model has none, so it takes k − 1 queries side by side. With bfloat16 draws p is
not quite what is drawn from, and the result not quite exact.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.kinds import EXACT
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import one_of, whole
from maskwalk.streams import Purpose


@SAMPLERS.register("speculative")
@dataclass(frozen=True)
class Speculative(Sampler):
    """Draft k (draw first), verify one by one: exact for any denoiser."""

    draft: str = "left_to_right"
    k: int = 4
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"k": k} for k in (2, 4, 8)),
        *({"draft": "random", "k": k} for k in (2, 4)),
    )

    @property
    def law_kind(self) -> str:
        """Exact: the law of one at a time in its order, for any denoiser."""
        return EXACT

    def __post_init__(self) -> None:
        one_of("draft", self.draft, ("left_to_right", "random"))
        whole("k", self.k, 1)

    @property
    def asks_elsewhere(self) -> bool:
        """The canvases with its drafts."""
        return True

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One block: draft, verify, keep what is accepted and the first correction."""
        view = View(canvas, denoise, rng)
        order = rng.uniform() if self.draft == "random" else view.place.to(torch.float64)
        order = order.masked_fill(~view.masked, 2.0 * view.span)
        turn = order.argsort(1).argsort(1)
        block = view.masked & (turn < self.k)
        raw = denoise(canvas.tokens, block)
        drafted = canvas.tokens.masked_scatter(block, rng.draw(raw, block))
        p, u = rng.drawing.shape(raw).exp(), rng.uniform(Purpose.ACCEPT)
        tokens = torch.where(turn == 0, drafted, canvas.tokens)
        going = torch.ones_like(block[:, 0])
        for j in range(1, self.k):
            at = block & (turn == j)
            if not bool(at.any()):
                break
            # Asked whether or not the token before was accepted: the queries are parallel.
            log_q = rng.drawing.shape(denoise(torch.where(turn < j, drafted, canvas.tokens), at))
            right, good = _verify(p[at[block]], log_q.exp(), drafted[at], u[at], rng, at)
            row = at.nonzero()[:, 0]
            keep_mask = at & going[:, None]
            tokens = tokens.masked_scatter(keep_mask, right[going[row]])
            rng.note(keep_mask, log_q[going[row]], right[going[row]])
            going[row] &= good
        return canvas.reveal(tokens != canvas.tokens, tokens[tokens != canvas.tokens])


def _verify(
    p: Float[Tensor, "n vocab"],
    q: Float[Tensor, "n vocab"],
    drafted: Int[Tensor, " n"],
    u: Float64[Tensor, " n"],
    rng: RoundStreams,
    at: Bool[Tensor, "batch length"],
) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
    """Tokens with the law q from tokens with the law p, and where the drafted ones were kept."""
    place = torch.arange(len(p), device=p.device)
    good = u * p[place, drafted] < q[place, drafted]
    rest = (q - p).clamp(min=0)
    # Where q = p nothing is refused but by rounding; the positive part may then be empty.
    rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, q)
    return torch.where(good, drafted, rng.redraw(rest.log(), at)), good
