"""What the worlds with exact conditionals share: numbered samples, and the oracle's manners.

A world of this kind says how to turn uniforms into a sequence (`_sample`) and how to weigh every
token at every position given what is revealed (`marginals`); the oracle is the rest. Evidence that
no sequence agrees with has no conditional: the answer there is uniform over the vocabulary, and the
oracle counts how often that happened (`impossible`), which goes into the record.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from maskwalk.denoiser import masked_positions, normalise
from maskwalk.errors import MaskwalkError, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.sizes import check_sequences

PIECE = 1 << 14  # sequences drawn at once
NOTE = "impossible evidence, if any: uniform over the vocabulary"

Weights = Float64[Tensor, "batch length vocab"]


class ExactWorld(ABC):
    """A law of sequences whose conditionals can be computed."""

    vocab_size: int
    length: int
    draws: int  # uniforms a sequence is made of
    pictured = True  # `show` draws partly masked sequences, too

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.length} positions, {self.vocab_size:,} tokens>"

    def sample(self, count: int, seed: int, first: int = 0) -> Int64[Tensor, "count length"]:
        """Sequences number first..first+count-1 of this seed; each depends on its number only."""
        check_sequences(whole("count", count, 0), max(self.length, self.draws))
        parts = [
            self._sample(block_uniforms(seed, Purpose.WALK, first + start, rows, self.draws))
            for start in range(0, count, PIECE)
            for rows in [min(PIECE, count - start)]
        ]
        blank = np.zeros((0, self.length), dtype=np.int64)
        return torch.from_numpy(np.concatenate([blank, *parts]).astype(np.int64))

    @abstractmethod
    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        """One sequence for each row of uniforms."""

    @abstractmethod
    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """Weight of every token at every position given the revealed ones, on their device.

        Zero throughout where no sequence agrees; a row's numbers do not depend on the batch.
        """

    def valid(self, tokens: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """False at the first position after which no sequence goes on as this one began."""
        self.check(tokens)
        place = torch.arange(self.length, device=tokens.device)
        low = torch.zeros(len(tokens), dtype=torch.int64, device=tokens.device)
        high = torch.full_like(low, self.length)
        while bool((low < high).any()):  # the longest possible beginning, by bisection
            middle = (low + high + 1) // 2
            prefix = torch.where(place < middle[:, None], tokens, self.vocab_size)
            possible = self.marginals(prefix).sum((1, 2)) > 0
            low, high = torch.where(possible, middle, low), torch.where(possible, high, middle - 1)
        return place != low[:, None]

    def oracle(self) -> "Oracle":
        """Exact one-coordinate conditionals."""
        return self._oracle

    @cached_property
    def _oracle(self) -> "Oracle":
        return Oracle(self)

    def check(self, tokens: Int[Tensor, "batch length"]) -> None:
        """A sentence for what is no sequence of this world."""
        if tokens.shape[1] != self.length:
            raise MaskwalkError(
                f"These sequences have {tokens.shape[1]} tokens; this world's have {self.length}."
            )
        if tokens.numel() and not (0 <= int(tokens.min()) <= int(tokens.max()) < self.vocab_size):
            raise MaskwalkError(
                f"These sequences hold tokens from {int(tokens.min())} to {int(tokens.max())}; the "
                f"world's are 0 to {self.vocab_size - 1}, and {self.vocab_size} is the mask."
            )


class Oracle:
    """A `Denoiser` that knows the law."""

    score_grid = 1e-9
    exact = True  # its marginals are the law's own

    def __init__(self, law: ExactWorld) -> None:
        self.law = law
        self.vocab_size = self.mask_id = law.vocab_size
        self.impossible = 0  # canvases asked about so far that no sequence agrees with
        self.notes = () if getattr(law, "full_support", False) else (NOTE,)

    def __repr__(self) -> str:
        return f"<Oracle of {self.law!r}>"

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Exact log-marginals of the masked positions named by `at`, packed."""
        places = check_question(tokens, at, self.law.length, self.mask_id)
        asked = places.any(1)
        weights = tokens.new_zeros((*tokens.shape, self.vocab_size), dtype=torch.float64)
        weights[asked] = self.law.marginals(tokens[asked])
        packed = weights[places]
        lost = packed.sum(1) == 0
        if bool(lost.any()):
            self.impossible += int((asked & (weights.sum((1, 2)) == 0)).sum())
            packed[lost] = 1.0
        return normalise(packed)


def check_question(
    tokens: Int[Tensor, "batch length"],
    at: Bool[Tensor, "batch length"] | None,
    length: int,
    mask_id: int,
) -> Bool[Tensor, "batch length"]:
    """The places to answer for, after checking that the question makes sense."""
    if tokens.shape[1] != length:
        raise MaskwalkError(
            f"The canvas has {tokens.shape[1]} positions but the world's sequences have {length}; "
            "build the world with the length you decode."
        )
    if tokens.numel() and (tokens.min() < 0 or tokens.max() > mask_id):
        raise MaskwalkError(
            f"The canvas holds tokens from {tokens.min()} to {tokens.max()}; they are 0 to "
            f"{mask_id - 1}, and {mask_id} is the mask."
        )
    if at is not None and bool((at & (tokens != mask_id)).any()):
        raise MaskwalkError(
            "A marginal was asked at a revealed position; ask only where the mask is."
        )
    return masked_positions(tokens, mask_id, at)


def neighbours(length: int) -> list[tuple[int, int]]:
    """Pairs of positions next to each other in the sequence."""
    return [(i, i + 1) for i in range(length - 1)]
