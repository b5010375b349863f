"""Answers at hand: a denoiser for a sampler that is run on what was asked for before."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import Denoiser, masked_positions
from maskwalk.errors import MaskwalkError


class Answers:
    """Looks marginals up in a table; `index` says where each row's positions are in it, -1 if not.

    It answers about the canvases in `tokens` only: a sampler that asks about others is refused.
    """

    def __init__(
        self,
        denoise: Denoiser,
        table: Float[Tensor, "n vocab"],
        index: Int[Tensor, "batch *k length"],
        tokens: Int[Tensor, "batch length"],
    ) -> None:
        self.vocab_size, self.mask_id = denoise.vocab_size, denoise.mask_id
        self.score_grid = denoise.score_grid
        self.table, self.index, self.tokens = table, index, tokens

    @classmethod
    def to(
        cls,
        denoise: Denoiser,
        canvases: Int[Tensor, "batch k length"],
        asked: Bool[Tensor, "batch k length"],
    ) -> "Answers":
        """What the denoiser says of several canvases of each row."""
        table = denoise(canvases.flatten(0, 1), asked.flatten(0, 1))
        return cls(denoise, table, numbered(asked), canvases[:, 0])

    def of(self, which: Int[Tensor, " batch"]) -> "Answers":
        """The answer about each row's canvas number `which`."""
        row = torch.arange(len(which), device=which.device)
        return Answers(self, self.table, self.index[row, which], self.tokens)

    def on(self, rows: Bool[Tensor, " batch"], tokens: Int[Tensor, "part length"]) -> "Answers":
        """The same for some of the rows, for a sampler whose canvases are `tokens`."""
        return Answers(self, self.table, self.index[rows], tokens)

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "n vocab"]:
        """The rows of the table for the places in `at`."""
        same = tokens.shape == self.tokens.shape and torch.equal(tokens, self.tokens)
        found = self.index[masked_positions(tokens, self.mask_id, at)] if same else None
        if found is None or bool((found < 0).any()):
            raise MaskwalkError(
                "The inner sampler must ask about its canvas as it is, and about nothing else: "
                "not one that looks ahead or back."
            )
        return self.table[found]


def numbered(asked: Bool[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """The row of a packed answer that each place asked for has; -1 where nothing was asked."""
    return (asked.flatten().cumsum(0) - 1).view_as(asked).masked_fill(~asked, -1)
