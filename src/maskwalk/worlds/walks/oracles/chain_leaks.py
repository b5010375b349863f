"""Impossible evidence under a first-order law of many nodes: leaks.py without a dense kernel.

Here k = 1: messages over the last token, kept by their number of leaks counted from the best of
each canvas, two levels of them. A leak leads to every node alike, so a step is one sparse
product and one number for each canvas and level:

    α^(j)_t = E_t (Pᵀ α^(j)_{t−1} + Σ α^(j−1)_{t−1} / V),   β^(j)_{t−1} = E_{t−1} (P β^(j)_t + …)

What is revealed separates, so a part of a canvas between two revealed tokens can be asked about
alone; messages are kept only where somebody asks.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw
from maskwalk.worlds.walks.oracles.base import chunks
from maskwalk.worlds.walks.oracles.leaks import WORKING, meet
from maskwalk.worlds.walks.oracles.steps import Steps

LEVELS = 2

Message = Float[Tensor, "canvas levels vocab"]


class ChainLeaks:
    """The sparse kernels of a first-order law, for canvases that no walk agrees with."""

    def __init__(self, law: ChainLaw | ScheduleLaw, device: torch.device) -> None:
        self.vocab = law.vocab_size
        self.initial = law.initial.to(device, torch.float64)
        self.steps = Steps(law, device)

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocab"]:
        """Weights of every token at every position."""
        weights = self.at(tokens, torch.ones_like(tokens, dtype=torch.bool))
        return weights.view(*tokens.shape, self.vocab)

    def at(
        self,
        tokens: Int[Tensor, "batch width"],
        wanted: Bool[Tensor, "batch width"],
        first: int = 0,
    ) -> Float[Tensor, "n vocab"]:
        """Weights of every token at the places wanted, packed.

        The canvases may be parts of longer ones, from position `first` on: from a revealed token or
        the beginning to a revealed token or the end.
        """
        weights = self.initial.new_empty((int(wanted.sum()), self.vocab))
        index = wanted.flatten().cumsum(0).view_as(wanted) - 1
        most = max(1, int(wanted.any(0).sum()))
        for part in chunks(len(tokens), WORKING // (most * LEVELS * self.vocab)):
            self._group(tokens[part], wanted[part], index[part], first, weights)
        return weights

    def _group(
        self, tokens: Tensor, wanted: Tensor, index: Tensor, first: int, weights: Tensor
    ) -> None:
        least = torch.zeros_like(tokens[:, 0])
        start = self.initial.new_zeros((len(tokens), LEVELS, self.vocab))
        start[:, 0] = self.initial
        mass = torch.stack([torch.ones_like(least), least], 1).to(self.initial)
        message, least = self._settle(start, mass, tokens[:, 0], least)
        width = tokens.shape[1]
        asked = wanted.any(0).tolist()
        forward = [(message, least) if asked[0] else None]
        for t in range(1, width):
            kernel = self.steps.leading(first + t).onward
            message, least = self._step(kernel, message, tokens[:, t], least)
            forward.append((message, least) if asked[t] else None)
        fewest, least = least, torch.zeros_like(least)
        message = torch.zeros_like(start)
        message[:, 0] = self._evidence(tokens[:, -1])
        for t in reversed(range(width)):
            before = forward.pop()
            if before is not None:
                joint = meet(before[0], message, fewest - before[1] - least)
                weights[index[wanted[:, t], t]] = joint[wanted[:, t]]
            if t:
                kernel = self.steps.leading(first + t).back
                message, least = self._step(kernel, message, tokens[:, t - 1], least)

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
        if bool((tokens == self.vocab).all()):  # nothing is known here
            message, top = stepped, leaked[:, -1:].expand(-1, -1, self.vocab)
        else:
            evidence = self._evidence(tokens)[:, None]
            message, top = stepped * evidence, leaked[:, -1:] * evidence
        empty = message[:, 0].amax(1) == 0
        shifted = torch.cat([message[:, 1:], top], 1)
        message = torch.where(empty[:, None, None], shifted, message)
        return message / message.amax((1, 2), keepdim=True), least + empty
