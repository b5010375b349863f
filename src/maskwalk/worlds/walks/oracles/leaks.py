"""Impossible evidence under an order-k law: the limit of a vanishing leak (see base.py).

Messages over the last k tokens are kept by their number j of leaks,

    α^(j)_t = T α^(j)_{t−1} + U α^(j−1)_{t−1},    U: forget the oldest token, any token follows,

and the answer is Σ_j α^(j)_t β^(J−j)_t with J the smallest number of leaks the evidence allows.
From any history k leaks lead to any other, so a path that at time t has over k leaks more than the
best one cannot end with the fewest: k + 1 levels, counted from the best of each canvas, are enough.
Levels of a canvas are scaled alike.

A leak leads to any history, so all V^k count here, not only those that can occur. But revealed
tokens are fixed: canvases are taken in groups with the same positions revealed, and a message then
only has an axis for each masked position among the last k.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.walks.oracles.base import chunks
from maskwalk.worlds.walks.oracles.lattice import histories

LIMIT = 2 * 10**8  # entries of a dense kernel (1.6 GB)
WORKING = 2**25  # numbers in the forward messages of a group of canvases (256 MB)


@dataclass(frozen=True)
class Step:
    """The step to a position: probs[canvas, oldest, rest, next]; axes of fixed tokens have size 1.

    The first axis has size 1 if nothing before the position is fixed.
    """

    probs: Float[Tensor, "canvas oldest rest next"]

    def forward(self, message: Tensor) -> tuple[Tensor, Tensor]:
        """Without and with a leak: (canvas, levels, rest, next) and (canvas, levels, rest, 1)."""
        old = message.reshape(*message.shape[:2], *self.probs.shape[1:3])
        return torch.einsum("cjor,corn->cjrn", old, self._full(old)), old.sum(2)[..., None]

    def backward(self, message: Tensor) -> tuple[Tensor, Tensor]:
        """Without and with a leak: (canvas, levels, oldest, rest), (canvas, levels, 1, rest)."""
        new = message.reshape(*message.shape[:2], *self.probs.shape[2:])
        return torch.einsum("cjrn,corn->cjor", new, self._full(new)), new.sum(3)[:, :, None]

    def _full(self, message: Tensor) -> Tensor:
        return self.probs.expand(len(message), -1, -1, -1)


class Leaks:
    """The dense kernel of a law on one device, for canvases that no walk agrees with."""

    def __init__(self, law: WalkLaw, device: torch.device) -> None:
        self.vocab, self.order, self.length = law.vocab_size, law.order, law.length
        last = min(law.order, law.length - 1)
        steps = last + 1 if law.homogeneous else law.length  # kernels that differ
        kernels = steps - last
        if self.vocab ** (last + 1) * kernels > LIMIT:
            tables = "the dense kernel" if kernels == 1 else f"{kernels} dense kernels"
            raise MaskwalkError(
                f"No walk agrees with the revealed tokens, and the limit of a vanishing leak needs "
                f"{tables} of {self.vocab}^{last + 1} = {self.vocab ** (last + 1):,} entries; at "
                f"most {LIMIT:,} are held. Take fewer nodes or a lower order, or a "
                "sampler that never reveals impossible tokens, such as bisection."
            )
        self.levels = min(law.order, law.length) + 1
        self.tables = [self._table(law, t).to(device) for t in range(steps)]

    def _table(self, law: WalkLaw, t: int) -> Tensor:
        past = min(t, self.order)
        states = torch.arange(self.vocab**past)
        parts = [
            law.step_probs(t, histories(states[part], past, self.vocab)).cpu().double()
            for part in chunks(len(states), 2**22 // self.vocab)
        ]
        return torch.cat(parts)

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocab"]:
        """Weights of every token at every masked position."""
        weights = torch.zeros(
            (*tokens.shape, self.vocab), dtype=torch.float64, device=tokens.device
        )
        patterns, group = torch.unique(tokens == self.vocab, dim=0, return_inverse=True)
        for i, masked in enumerate(patterns.cpu()):
            (rows,) = (group == i).nonzero(as_tuple=True)
            free = max(self._free(masked, t) for t in range(self.length))
            size = self.length * self.levels * self.vocab**free
            for part in chunks(len(rows), WORKING // size):
                weights[rows[part]] = self._group(tokens[rows[part]], masked)
        return weights

    def _free(self, masked: Tensor, t: int) -> int:
        """How many of the tokens a message at position t speaks of are masked."""
        return int(masked[max(0, t + 1 - self.order) : t + 1].sum())

    def _group(self, tokens: Tensor, masked: Bool[Tensor, " length"]) -> Tensor:
        steps = [self._step(tokens, masked, t) for t in range(self.length)]
        message = self._first(len(tokens), 1, tokens.device)
        least = torch.zeros_like(tokens[:, 0])
        forward = []
        for step in steps:
            message, least = self._settle(*step.forward(message), least)
            forward.append((message, least))
        message = self._first(len(tokens), message.shape[2], tokens.device)
        fewest, least = least, torch.zeros_like(least)
        weights = message.new_zeros((*tokens.shape, self.vocab))
        for t in reversed(range(self.length)):
            before, used = forward[t]
            if masked[t]:
                joint = meet(before, message, fewest - used - least)
                weights[:, t] = joint.view(len(tokens), -1, self.vocab).sum(1)
            message, least = self._settle(*steps[t].backward(message), least)
        return weights

    def _first(self, count: int, states: int, device: torch.device) -> Tensor:
        message = torch.zeros((count, self.levels, states), dtype=torch.float64, device=device)
        message[:, 0] = 1.0
        return message

    def _step(self, tokens: Tensor, masked: Tensor, t: int) -> Step:
        """The kernel's rows after the histories that the evidence before position t allows."""
        past = min(t, self.order)
        before = range(t - past, t)
        states = torch.zeros((1, 1), dtype=torch.int64, device=tokens.device)
        nodes = torch.arange(self.vocab, device=tokens.device)
        for i in before:
            here = nodes[None, None] if masked[i] else tokens[:, i, None, None]
            states = (states[:, :, None] * self.vocab + here).flatten(1)
        table = self.tables[min(t, len(self.tables) - 1)]
        # (canvas or 1, histories, vocab); with nothing revealed, all histories in order
        probs = table[None] if states.shape[1] == len(table) else table[states]
        if not masked[t]:
            place = tokens[:, t, None, None].expand(-1, states.shape[1], 1)
            probs = probs.expand(len(tokens), -1, -1).gather(2, place)
        oldest = self.vocab if past == self.order and masked[t - past] else 1
        return Step(probs.view(len(probs), oldest, -1, probs.shape[2]))

    def _settle(self, stepped: Tensor, leaked: Tensor, least: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the leaks one level up, lets the first level be the first that is not empty, scales.

        The best path may have to leak once, never twice: a leak leads to every token.
        """
        leaked = leaked / self.vocab
        stepped[:, 1:] += leaked[:, :-1]
        top = leaked[:, -1:].expand(-1, 1, *stepped.shape[2:]).flatten(2)
        message = stepped.flatten(2)
        empty = message[:, 0].amax(1) == 0
        shifted = torch.cat([message[:, 1:], top], 1)
        message = torch.where(empty[:, None, None], shifted, message)
        return message / message.amax((1, 2), keepdim=True), least + empty


def meet(forward: Tensor, backward: Tensor, spare: Tensor) -> Tensor:
    """Σ over the levels that add up to `spare`, for each state."""
    levels = forward.shape[1]
    joint = torch.zeros_like(forward[:, 0])
    for i in range(levels):
        other = spare - i
        fits = (other >= 0) & (other < levels)
        index = other.clamp(0, levels - 1)[:, None, None].expand(-1, 1, forward.shape[2])
        joint += forward[:, i] * backward.gather(1, index)[:, 0] * fits[:, None]
    return joint
