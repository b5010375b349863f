"""Classifier-free guidance: away from what the model would say without the prompt.

With c the logits given the canvas and u those given the canvas without what was given at first
(masked there), the guided logits are u + (s + 1)(c − u); s = 0 is the model itself. Every question
is two passes of the network, counted as two calls. Logits and log-marginals differ by a constant at
each position, so the guided marginals are the same from both.

Source: Nie et al., Scaling up masked diffusion models on text, arXiv 2410.18514 (unsupervised
guidance); `cfg_scale` of generate() in ML-GSAI/LLaDA b7e6c35.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import masked_positions
from maskwalk.denoisers.language.base import TextDenoiser
from maskwalk.errors import real
from maskwalk.kernels.rows import slices

MOST = 100.0


class Guided:
    """A text denoiser under guidance, for canvases whose given tokens stand at the same places."""

    passes = 2  # of the network for every question

    def __init__(
        self, denoiser: TextDenoiser, scale: float, given: Bool[Tensor, " length"]
    ) -> None:
        self.inner, self.scale, self.given = denoiser, real("guidance", scale, 0.0, MOST), given
        self.vocab_size, self.mask_id = denoiser.vocab_size, denoiser.mask_id
        self.score_grid, self.rows = denoiser.score_grid, denoiser.rows
        self.forbidden = denoiser.forbidden

    @property
    def changes(self) -> tuple[str, ...]:
        """What makes the answers others than the model's."""
        return (f"classifier-free guidance {self.scale:g}",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a record should say of the answers."""
        return (*self.inner.notes, *self.changes)

    @torch.no_grad()
    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Guided log-marginals at the positions named, packed."""
        return self.over_all(tokens, masked_positions(tokens, self.mask_id, at))[0]

    @torch.no_grad()
    def over_all(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "rows vocab"], Float[Tensor, "rows vocab"]]:
        """(log-marginals, the same before the tokens that are never drawn are taken out)."""
        guided = self.inner.over_all(tokens, at)[1]
        free = self.inner.over_all(tokens.masked_fill(self.given, self.mask_id), at)[1]
        for some in slices(guided):
            mixed = free[some] + (self.scale + 1) * (guided[some] - free[some])
            guided[some] = torch.log_softmax(mixed, -1)
        for some in slices(free):
            free[some] = guided[some]
            free[some, list(self.forbidden)] = -torch.inf
            free[some] = torch.log_softmax(free[some], -1)
        return free, guided
