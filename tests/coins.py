"""A toy world, as a user would write it in a file of their own: fair coins with even parity."""

import torch

from maskwalk import WORLDS, Purpose, Streams


class Oracle:
    """Exact conditionals: free while two coins are masked, forced for the last one."""

    score_grid = 1e-9

    def __init__(self, world: "Coins") -> None:
        self.vocab_size = self.mask_id = 2

    def __call__(self, tokens, at=None):
        masked = tokens == 2
        at = masked if at is None else at
        odd = torch.where(masked, 0, tokens).sum(1) % 2
        fair = torch.full((*tokens.shape, 2), 0.5, dtype=torch.float64)
        last = torch.nn.functional.one_hot(odd, 2).to(torch.float64)[:, None, :]
        forced = (masked.sum(1) == 1)[:, None, None]
        return torch.where(forced, last, fair)[at].log()


@WORLDS.register("coins")
class Coins:
    """Fair coins, an even number of heads: no part of a sequence separates the rest."""

    vocab_size = 2

    def __init__(self, length: int = 8) -> None:
        self.length = length

    def sample(self, count, seed, first=0):
        u = Streams(seed, torch.arange(first, first + count)).uniform(Purpose.WALK, 0, self.length)
        tokens = (u < 0.5).to(torch.int64)
        tokens[:, -1] = tokens[:, :-1].sum(1) % 2
        return tokens

    def valid(self, tokens):
        even = (tokens.sum(1) % 2 == 0)[:, None]
        return even | (torch.arange(self.length) < self.length - 1)

    def log_prob(self, tokens):
        even = tokens.sum(1) % 2 == 0
        each = torch.tensor(0.5, dtype=torch.float64).log() * (self.length - 1)
        return torch.where(even, each, -torch.inf)

    def oracle(self):
        return Oracle(self)

    def show(self, tokens):
        return "".join("TH?"[token] for token in tokens.tolist())
