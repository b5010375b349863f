"""Toy networks: fixed random functions of the canvas, for samplers and for plain loops alike.

A network has two layers of random weights: the canvas, masks included, is summed up in eight hidden
numbers, and every position reads its logits from them. Positions differ in sharpness, so that
confidences lie on both sides of every rule's thresholds. No two scores of a canvas are equal: no
tie decides anything. Eight networks of one length are one denoiser, and the last token of a canvas
says which of them answers, so that one batch asks them all.
"""

import torch
from torch import Tensor

HIDDEN, NETWORKS = 8, 8


class Toy:
    """`NETWORKS` networks over `length` positions and as many tokens; others for every seed."""

    score_grid = 1e-12

    def __init__(self, seed: int, length: int, vocab_size: int = NETWORKS) -> None:
        self.vocab_size = self.mask_id = vocab_size
        self.length = length
        random = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=random, dtype=torch.float64)

        self.inner = normal(NETWORKS, length, vocab_size + 1, HIDDEN) * (3 / length) ** 0.5
        sharpness = torch.linspace(0.3, 1.4, 5, dtype=torch.float64)[torch.arange(length) * 3 % 5]
        self.outer = normal(NETWORKS, length, vocab_size, HIDDEN) * sharpness[:, None, None]
        self.seen: dict[tuple[int, ...], list[list[float]]] = {}

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        """The networks as a Denoiser."""
        at = tokens == self.mask_id if at is None else at
        network = torch.where(tokens[:, -1] == self.mask_id, 0, tokens[:, -1]) % NETWORKS
        place = torch.arange(self.length)
        hidden = torch.tanh(self.inner[network[:, None], place, tokens].sum(1))
        row, position = at.nonzero(as_tuple=True)
        logits = torch.einsum("nvh,nh->nv", self.outer[network[row], position], hidden[row])
        return torch.log_softmax(logits, -1)

    def probs(self, canvas: list[int]) -> list[list[float]]:
        """The marginals of one canvas as plain numbers, one for each position."""
        key = tuple(canvas)
        if key not in self.seen:
            everywhere = torch.ones((1, self.length), dtype=torch.bool)
            self.seen[key] = self(torch.tensor([canvas]), everywhere).exp().tolist()
        return self.seen[key]

    def canvas(self, given: list[int], network: int | None = None) -> list[int]:
        """A canvas with some positions given, and the network's number at the end."""
        tokens = [(3 * i + 1) % self.vocab_size for i in range(self.length)]
        tokens = [x if i in given else self.mask_id for i, x in enumerate(tokens)]
        return tokens if network is None else [*tokens[:-1], network]

    @property
    def starts(self) -> list[list[int]]:
        """Empty canvases, prompts, tokens given in the middle, and both: two for every network."""
        middle = self.length // 2
        given = ([], [0, 1, 2], [self.length // 3, middle], [0, middle + 1])
        named = [self.canvas(given[j % 4], j // 2) for j in range(2 * NETWORKS)]
        return [self.canvas([]), self.canvas([0, middle]), *named]


# 56 networks; odd and even lengths, so that blocks and strides do not come out even.
TOYS = [Toy(seed, length) for seed, length in enumerate((8, 9, 10, 11, 12, 13, 15))]
