"""Draw first, then keep: what the draw-first rules share.

A token is drawn at every masked position, and positions are ranked by the probability p_i(x_i) of
what was drawn there. Likely tokens are kept more often than they are drawn, so the law is biased
even with a perfect denoiser and one position a round. Redrawn tokens are thrown away, not remasked.
"""

from abc import abstractmethod

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.kernels.small import written


class DrawFirst(Sampler):
    """Draws everywhere, then keeps what the subclass says."""

    @abstractmethod
    def keep(
        self, view: View, drawn: Float64[Tensor, "batch length"], state: State
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The positions to keep, given minus the probability of each drawn token."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One call: draw everywhere, keep some."""
        view = View(canvas, denoise, rng)
        log_probs = view.log_marginals
        tokens = rng.draw(log_probs, view.masked)
        drawn = view.score_drawn(tokens)
        keep_mask, state = self.keep(view, drawn, canvas.state)
        few = canvas.few
        if isinstance(few, np.ndarray):
            few = written(few, canvas.masked_few, tokens, keep_mask)
            new = torch.from_numpy(few)
        else:
            drawn_canvas = canvas.tokens.masked_scatter(view.masked, tokens)
            few = new = torch.where(keep_mask, drawn_canvas, canvas.tokens)
        after = Canvas(new, canvas.given, canvas.mask_id, canvas.round, state, canvas.open)
        after.__dict__["few"] = few  # known already
        return after
