"""What a policy may rank positions by. Lower is always sooner.

With p the marginal at a masked position and p⁽¹⁾ ≥ p⁽²⁾ its two largest probabilities:

    entropy      H = -Σ p log p         (nats)
    confidence   -max p
    margin       -(p⁽¹⁾ - p⁽²⁾)

Scores are float64 and rounded to the denoiser's grid before they are compared: with rotary
positions a fully masked input has equal marginals everywhere, and without rounding the last bits of
an fp32 network would decide what is a tie.
"""

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from maskwalk.kernels.rows import by_rows, probabilities
from maskwalk.kernels.small import small
from maskwalk.specs import Registry

SCORES: Registry[Tensor] = Registry("score", context=("log_probs",))


@SCORES.register("entropy")
def entropy(log_probs: Float[Tensor, "rows vocab"]) -> Float64[Tensor, " rows"]:
    """Entropy of each marginal in nats; 0 log 0 = 0."""
    if log_probs.is_cuda:
        from maskwalk.kernels.entropy import entropy as fused

        return fused(log_probs)
    return by_rows(_entropy, log_probs)


def _entropy(log_probs: Float[Tensor, "rows vocab"]) -> Float64[Tensor, " rows"]:
    probs = probabilities(log_probs)
    nats: Tensor = torch.special.entr(probs, out=probs)  # in place: the table may be large
    return nats.sum(-1)


@SCORES.register("confidence")
def confidence(log_probs: Float[Tensor, "rows vocab"]) -> Float64[Tensor, " rows"]:
    """Minus the largest probability."""
    return -_largest(log_probs, 1)[:, 0]


@SCORES.register("margin")
def margin(log_probs: Float[Tensor, "rows vocab"]) -> Float64[Tensor, " rows"]:
    """Minus the gap between the two largest probabilities (one token: its probability)."""
    top = _largest(log_probs, 2)
    return -(top[:, 0] - top[:, 1]) if top.shape[-1] == 2 else -top[:, 0]


def _largest(log_probs: Float[Tensor, "rows vocab"], count: int) -> Float64[Tensor, "rows _"]:
    """The largest probabilities of each marginal, at most two of them."""
    if log_probs.is_cuda:
        from maskwalk.kernels.top2 import top2

        return top2(log_probs).to(torch.float64).exp()
    if count == 1:
        return log_probs.amax(-1, keepdim=True).to(torch.float64).exp()
    count = min(count, log_probs.shape[-1])
    return log_probs.topk(count, -1).values.to(torch.float64).exp()


def score(
    name: str, log_probs: Float[Tensor, "rows vocab"], grid: float
) -> Float64[Tensor, " rows"]:
    """The named score of each marginal, rounded to a multiple of `grid`."""
    return on_grid(SCORES[name](log_probs), grid)


def on_grid(values: Float[Tensor, " rows"], grid: float) -> Float[Tensor, " rows"]:
    """The values, each rounded to a multiple of `grid` in their own precision."""
    numbers = small(values)
    if isinstance(numbers, np.ndarray):
        spacing = numbers.dtype.type(grid)
        return torch.from_numpy(np.rint(numbers / spacing) * spacing)
    return torch.round(values / grid) * grid
