"""Calls are counted where the denoiser is asked, so no sampler miscounts by mistake.

A sampler asks about its rows; about some of them (`asking_for`); or about several candidates of
each, which lie next to each other in a batch k times as large (`tokens.repeat_interleave(k, 0)`).
Every sequence read is one call of the row it belongs to, or as many as the denoiser says (`passes`:
guidance reads it twice).

At a revealed token a denoiser says nothing, unless it was trained to doubt what it is shown: then
it has `doubts = True`, and `doubt` reads it there in the same call. Any other is asked for each
such token with that token masked, one call each.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.decoding.checks import check_answer
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.kernels.small import count, large, small


class Counted:
    """A denoiser that counts, for each row of the current batch, how often it was asked."""

    def __init__(self, denoiser: Denoiser, batch: int, device: torch.device) -> None:
        self._denoiser = denoiser
        self.vocab_size, self.mask_id, self.score_grid = (
            denoiser.vocab_size,
            denoiser.mask_id,
            denoiser.score_grid,
        )
        self.passes = int(getattr(denoiser, "passes", 1))
        self.calls = torch.zeros(batch, dtype=torch.int64, device=device)
        self.rows = torch.arange(batch, device=device)
        self._calls_few = small(self.calls)

    def on(self, rows: Bool[Tensor, " batch"]) -> "Counted":
        """The same count, for a batch of some of the rows."""
        part = Counted(self._denoiser, 0, self.calls.device)
        part.calls, part._calls_few, part.rows = self.calls, self._calls_few, self.rows[rows]
        return part

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """The denoiser's answer; every row that asked for something is charged one call."""
        asked = small(tokens == self.mask_id if at is None else at)
        places = count(asked)
        self._charge(asked, places)
        answer = self._denoiser(tokens, at)
        check_answer(self._denoiser, answer, places)
        return answer

    def over_all(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "rows vocab"], Float[Tensor, "rows vocab"]]:
        """(the answer, the same over all tokens), at the price of one; equal where a denoiser has
        no tokens that are never drawn."""
        both = getattr(self._denoiser, "over_all", None)
        if both is None:
            answer = self(tokens, at)
            return answer, answer
        asked = small(at)
        places = count(asked)
        self._charge(asked, places)
        answer, everything = both(tokens, at)
        check_answer(self._denoiser, answer, places)
        return answer, everything

    def _charge(self, asked: Any, places: int) -> None:
        """Charges the rows that ask, by where they ask (as `small` gives it; so many places)."""
        sequences, batch = asked.shape[0], self.rows.shape[0]
        branches, more = divmod(sequences, batch)
        if more:
            raise MaskwalkError(
                f"A sampler asks about its {batch} rows, or about as many candidates of "
                f"each: not about {sequences} sequences."
            )
        if branches == 1 and batch == self.calls.shape[0]:  # every row, in its order
            few = isinstance(asked, np.ndarray)
            if few and batch == 1:  # a number costs less than an array of one
                self._calls_few[0] += self.passes * (places > 0)
                return
            calls, asking = self._calls_few if few else self.calls, asked.any(1)
            calls += asking if self.passes == 1 else self.passes * asking
            return
        asking = asked.any(1)
        rows = self.rows if branches == 1 else self.rows.repeat_interleave(branches)
        self.calls.index_add_(0, rows, self.passes * large(asking).to(torch.int64))

    def doubt(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "rows vocab"]:
        """Log-marginals at `at`; where a token is revealed, what the others say of it."""
        if getattr(self._denoiser, "doubts", False):
            return self(tokens, at)
        masked = tokens == self.mask_id
        answer = self(tokens, at & masked)
        row, place = (at & ~masked).nonzero(as_tuple=True)
        if len(row) == 0:
            return answer
        here = torch.arange(at.shape[1], device=at.device) == place[:, None]
        others = self._denoiser(tokens[row].masked_fill(here, self.mask_id), here)
        check_answer(self._denoiser, others, len(row))
        self.calls.index_add_(0, self.rows[row], torch.full_like(row, self.passes))
        whole = others.new_empty((int(at.sum()), others.shape[1]))
        whole[masked[at]], whole[~masked[at]] = answer.to(whole), others
        return whole


def doubt(
    denoise: Denoiser, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"]
) -> Float[Tensor, "rows vocab"]:
    """`Counted.doubt`, for a denoiser that may not be counted."""
    if not isinstance(denoise, Counted):
        denoise = Counted(denoise, len(tokens), tokens.device)
    return denoise.doubt(tokens, at)


def asking_for(denoise: Denoiser, rows: Bool[Tensor, " batch"]) -> Denoiser:
    """A denoiser for a batch of some of the rows, counted where the whole is."""
    return denoise.on(rows) if isinstance(denoise, Counted) else denoise
