"""Entmax: marginals whose tails are exactly zero, by training and not by a threshold.

For 1 < α ≤ 2, with s = (α − 1)·logits and n = 1/(α − 1):

    p(v) = max(s(v) − τ, 0)ⁿ,   τ such that the sum is 1

It is the softmax of Tsallis entropy: argmax_p p·z + H_α(p), H_α(p) = Σ_v (p − p^α) / (α(α − 1)).
α → 1 is softmax, α = 2 sparsemax. What is minimised is its Fenchel–Young loss

    L(z, y) = H_α(p) + (p − onehot(y))·z ≥ 0,   gradient p − onehot(y),

so that the best answer is still the true conditional, its zeros included. The loss is in no unit of
information. A true token may have p = 0, and then −log p is infinite: held-out numbers are the
share of such tokens and the nats of the others.

τ is found by Newton's method on the n-norm of max(s − τ, 0), a convex function, from τ = max s − 1,
where it is at least 1: every step stays on that side. The number of steps is fixed.
Source: Peters, Niculae, Martins, Sparse sequence-to-sequence models, ACL 2019.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from maskwalk.denoisers.network.outputs.base import OUTPUTS, Output, Weights, scores
from maskwalk.errors import MaskwalkError, real

NEWTON = 12  # steps: float32 is exact after eight or fewer (a test looks)


@OUTPUTS.register("entmax")
@dataclass(frozen=True, kw_only=True)
class Entmax(Output):
    """Every position for itself, with exact zeros in the tail: entmax of its logits."""

    alpha: float = 1.5
    likelihood = False
    copies = 8

    def __post_init__(self) -> None:
        real("alpha", self.alpha, 1.05, 2.0)

    def check(self, config: Any) -> None:
        """A causal model is judged by its exact likelihood, which must be finite."""
        if config.causal:
            raise MaskwalkError("A causal network needs output=softmax, not entmax(…).")

    def losses(
        self, config: Any, weights: Weights, logits: Any, walks: Tensor, tokens: Tensor
    ) -> Float[Tensor, "models batch length"]:
        """The Fenchel–Young loss."""
        loss: Any = _FenchelYoung.apply  # untyped in PyTorch
        result: Tensor = loss(scores(config, logits, tokens), walks, self.alpha)
        return result

    def log_marginals(
        self, config: Any, weights: Weights, logits: Any, tokens: Tensor
    ) -> Float[Tensor, "models batch length vocab"]:
        """The logarithms of entmax."""
        return entmax(scores(config, logits, tokens), self.alpha).log()


def entmax(z: Float[Tensor, "... vocab"], alpha: float) -> Float[Tensor, "... vocab"]:
    """The distribution of these logits, with exact zeros."""
    power = 1 / (alpha - 1)
    s = (alpha - 1) * (z - z.amax(-1, keepdim=True))
    tau = torch.full_like(s[..., :1], -1.0)
    for _ in range(NEWTON):
        above = (s - tau).clamp(min=0)
        sum_, slope = above.pow(power).sum(-1, keepdim=True), _slope(above, power)
        tau = tau + (sum_ - sum_.pow(1 - 1 / power)) / slope
    p = (s - tau).clamp(min=0).pow(power)
    return p / p.sum(-1, keepdim=True)


def _slope(above: Tensor, power: float) -> Tensor:
    """Σ above^(n − 1) over the support, which for n = 1 is its size."""
    return torch.where(above > 0, above.pow(power - 1), 0.0).sum(-1, keepdim=True)


class _FenchelYoung(torch.autograd.Function):
    """The loss with its gradient, p − onehot."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, walks: Tensor, alpha: float) -> Tensor:
        p = entmax(z, alpha)
        hot = (walks[..., None] == torch.arange(z.shape[-1], device=z.device)).to(z.dtype)
        ctx.save_for_backward(p - hot)
        entropy = (p - p.pow(alpha)).sum(-1) / (alpha * (alpha - 1))
        return entropy + ((p - hot) * z).sum(-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (difference,) = ctx.saved_tensors
        return gradients[0][..., None] * difference, None, None
