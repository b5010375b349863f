"""Text as a world: passages of books that a model has not seen, and how a person reads them.

Nobody can check a text or say how likely it is, so `valid`, `log_prob` and `oracle` are None; its
law is that of the held-out passages that come with a model.
"""

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.text.passages import read_beside, token_bytes
from maskwalk.worlds.world import WORLDS


@WORLDS.register("text")
class Text:
    """Passages of text: held-out ones of the books that `source`, a model of text, was made from.

    `source` is zoo:NAME or a directory that `maskwalk text train` wrote; None is a text whose
    passages are not here. `length` is their number of tokens (None: the longest).
    """

    def __init__(self, source: str | None = "zoo:books_mdm", length: int | None = None) -> None:
        if source is None:
            raise MaskwalkError("This text comes without its passages; name their source.")
        self.source = source
        self.tokenizer, passages = read_beside(source)
        longest = passages.shape[1]
        self.length = longest if length is None else whole("length", length, 1, longest)
        self.passages: Tensor = passages[:, : self.length]
        self.vocab_size = len(self.tokenizer)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.length} positions, {self.vocab_size:,} tokens>"

    @cached_property
    def sizes(self) -> Int64[Tensor, " vocab"]:
        """The bytes of every token."""
        return token_bytes(self.tokenizer)

    def sample(self, count: int, seed: int, first: int = 0) -> Int64[Tensor, "count length"]:
        """Held-out passages at random, with replacement; each depends on its number only."""
        whole("count", count, 0)
        u = block_uniforms(seed, Purpose.WALK, first, count, 1)[:, 0]
        return self.passages[torch.from_numpy(np.floor(u * len(self.passages)).astype(np.int64))]

    def valid(self, tokens: Int64[Tensor, "count length"]) -> None:
        """Nobody can check a text."""

    def log_prob(self, tokens: Int64[Tensor, "count length"]) -> None:
        """Nobody knows."""

    def oracle(self) -> None:
        """There is none."""

    def show(self, tokens: Int64[Tensor, " length"]) -> str:
        """The text; special tokens are left out."""
        clean = [token for token in tokens.tolist() if token < self.vocab_size]
        return str(self.tokenizer.decode(clean, skip_special_tokens=True))
