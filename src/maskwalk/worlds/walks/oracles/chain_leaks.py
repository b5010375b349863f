"""Impossible evidence under a first-order law of many nodes: leaks.py without a dense kernel.

Here k = 1: messages over the last token, kept by their number of leaks counted from the best of
each canvas, two levels of them. A leak leads to every node alike, so a step is one sparse
product and one number for each canvas and level:

    α^(j)_t = E_t (Pᵀ α^(j)_{t−1} + Σ α^(j−1)_{t−1} / V),   β^(j)_{t−1} = E_{t−1} (P β^(j)_t + …)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.walks.laws import ChainLaw
from maskwalk.worlds.walks.oracles.base import chunks
from maskwalk.worlds.walks.oracles.leaks import WORKING, meet

LEVELS = 2

Message = Float[Tensor, "canvas levels vocab"]


class ChainLeaks:
    """The sparse kernel of a first-order law, for canvases that no walk agrees with."""

    def __init__(self, law: ChainLaw, device: torch.device) -> None:
        self.vocab, self.length = law.vocab_size, law.length
        self.initial = law.initial.to(device, torch.float64)
        coordinates = law.kernel.tocoo()
        source, target = (
            torch.from_numpy(index.astype("int64")).to(device) for index in coordinates.coords
        )
        value = torch.from_numpy(coordinates.data).to(device)
        shape = (self.vocab, self.vocab)
        self.onward = Sparse(target, source, value, shape)
        self.back = Sparse(source, target, value, shape)

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocab"]:
        """Weights of every token at every position."""
        weights = self.initial.new_zeros((*tokens.shape, self.vocab))
        for part in chunks(len(tokens), WORKING // (self.length * LEVELS * self.vocab)):
            weights[part] = self._group(tokens[part])
        return weights

    def _group(self, tokens: Tensor) -> Tensor:
        least = torch.zeros_like(tokens[:, 0])
        start = self.initial.new_zeros((len(tokens), LEVELS, self.vocab))
        start[:, 0] = self.initial
        mass = torch.stack([torch.ones_like(least), least], 1).to(self.initial)
        message, least = self._settle(start, mass, tokens[:, 0], least)
        forward = [(message, least)]
        for t in range(1, self.length):
            message, least = self._step(self.onward, message, tokens[:, t], least)
            forward.append((message, least))
        fewest, least = least, torch.zeros_like(least)
        message = torch.zeros_like(start)
        message[:, 0] = self._evidence(tokens[:, -1])
        weights = self.initial.new_zeros((*tokens.shape, self.vocab))
        for t in reversed(range(self.length)):
            before, used = forward[t]
            weights[:, t] = meet(before, message, fewest - used - least)
            if t:
                message, least = self._step(self.back, message, tokens[:, t - 1], least)
        return weights

    def _evidence(self, tokens: Tensor) -> Tensor:
        """1 where a node agrees with what is revealed at a position, 0 elsewhere."""
        nodes = torch.arange(self.vocab, device=tokens.device)
        agree = (tokens[:, None] == nodes) | (tokens[:, None] == self.vocab)
        return agree.to(torch.float64)

    def _step(
        self, kernel: Sparse, message: Tensor, tokens: Tensor, least: Tensor
    ) -> tuple[Tensor, Tensor]:
        stepped = (kernel @ message.flatten(0, 1).T.contiguous()).T.contiguous()
        return self._settle(stepped.view_as(message), message.sum(2), tokens, least)

    def _settle(
        self, stepped: Message, mass: Tensor, tokens: Tensor, least: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Adds the leaks one level up, lets the first level be the first not empty, scales."""
        leaked = (mass / self.vocab)[:, :, None]
        stepped[:, 1:] += leaked[:, :-1]
        evidence = self._evidence(tokens)[:, None]
        message, top = stepped * evidence, leaked[:, -1:] * evidence
        empty = message[:, 0].amax(1) == 0
        shifted = torch.cat([message[:, 1:], top], 1)
        message = torch.where(empty[:, None, None], shifted, message)
        return message / message.amax((1, 2), keepdim=True), least + empty
