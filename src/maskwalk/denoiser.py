"""What a denoiser is: a function from partly masked sequences to one-coordinate log-marginals."""

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class Denoiser(Protocol):
    """Clean tokens are 0..vocab_size-1; `mask_id` marks what is masked.

    `score_grid` is the spacing to which scores are rounded before they are ranked: coarser than the
    rounding noise of this denoiser, so that true ties stay ties.
    """

    vocab_size: int
    mask_id: int
    score_grid: float

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Normalised log-marginals of the masked positions named by `at` (all masked if None).

        Packed in row-major order of `at`; float64, or float32 where the vocabulary is large; -inf
        for impossible tokens, never the mask. The table is the caller's, who may overwrite it.
        """
        ...


def masked_positions(
    tokens: Int[Tensor, "batch length"], mask_id: int, at: Bool[Tensor, "batch length"] | None
) -> Bool[Tensor, "batch length"]:
    """The places a denoiser has to answer for."""
    return tokens == mask_id if at is None else at


def normalise(weights: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
    """Non-negative weights to log-probabilities; zeros become -inf."""
    return (weights / weights.sum(-1, keepdim=True)).log()


__all__ = ["Denoiser", "masked_positions", "normalise"]
