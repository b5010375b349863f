"""How well revealed tokens are supported by the others: asked in two calls, or read off in one."""

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas
from maskwalk.decoding.counting import doubt
from maskwalk.denoiser import Denoiser


def support(
    canvas: Canvas, denoise: Denoiser, at: Bool[Tensor, "batch length"]
) -> tuple[Float64[Tensor, "batch length"], Float64[Tensor, "batch length"]]:
    """(log p of the token, log p of the likeliest token) at the positions in `at`; 0 elsewhere.

    The even positions of `at` are masked together and asked for given the rest, then the odd ones:
    in a first-order law a token then sees both its neighbours.
    """
    own = torch.zeros_like(canvas.tokens, dtype=torch.float64)
    best = own.clone()
    odd = torch.arange(at.shape[1], device=at.device) % 2 == 1
    for half in (at & ~odd, at & odd):
        if bool(half.any()):
            log_probs = denoise(canvas.tokens.masked_fill(half, canvas.mask_id), half)
            own[half] = log_probs.gather(1, canvas.tokens[half][:, None])[:, 0].to(own)
            best[half] = log_probs.amax(1).to(own)
    return own, best


def own_support(
    canvas: Canvas, denoise: Denoiser, at: Bool[Tensor, "batch length"]
) -> tuple[Float64[Tensor, "batch length"], Float64[Tensor, "batch length"]]:
    """The same, each token given all others, from one call of a denoiser that doubts."""
    own = torch.zeros_like(canvas.tokens, dtype=torch.float64)
    best = own.clone()
    if bool(at.any()):
        log_probs = doubt(denoise, canvas.tokens, at)
        own[at] = log_probs.gather(1, canvas.tokens[at][:, None])[:, 0].to(own)
        best[at] = log_probs.amax(1).to(own)
    return own, best
