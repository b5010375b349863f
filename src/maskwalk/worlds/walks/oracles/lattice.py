"""The lifted chain of an order-k law, and messages along it.

The last k tokens (x_{t−k+1}, …, x_t) form a first-order chain (all tokens, while the walk is
shorter than that). A history is numbered with its newest token as the lowest digit in base V, but
only those that can occur are states: of the V^k a graph allows few. Transitions are sparse, so one
step of all sequences is one sparse × dense product:

    α_t = E_t T α_{t−1},   β_{t−1} = Tᵀ E_t β_t,   p_t(x) ∝ Σ_{states that end in x} α_t β_t

with E_t the evidence: 0 where a state's newest token is not the one revealed. Messages are scaled
at every step, so that a long walk does not underflow.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.walks.laws import ChainLaw, WalkLaw
from maskwalk.worlds.walks.oracles.base import chunks

TRANSITIONS = 2 * 10**7  # positive transition probabilities that may be stored

Entries = tuple[Tensor, Tensor, Tensor]  # from, to, probability


def histories(states: Int[Tensor, " n"], past: int, vocab: int) -> Int[Tensor, "n past"]:
    """The tokens of numbered histories, oldest first."""
    powers = vocab ** torch.arange(past, device=states.device).flip(0)
    return states[:, None] // powers % vocab


class Lattice:
    """The states that can occur and the steps between them, on one device."""

    def __init__(self, law: WalkLaw, device: torch.device) -> None:
        self.law, self.vocab, self.length = law, law.vocab_size, law.length
        self.full = min(law.order, law.length)  # tokens in a full history
        known = [torch.zeros(1, dtype=torch.int64)]
        entries = []
        for t in range(self.full if law.homogeneous else law.length):
            entries.append(self._expand(known[t], t))
            known.append(torch.unique(entries[t][1]))
            self._check(sum(len(value) for _, _, value in entries))
        if (
            law.homogeneous and law.order < law.length
        ):  # from full histories to full histories, until none is new
            new, full_entries = known[-1], []
            while len(new):
                full_entries.append(self._expand(new, law.order))
                new = torch.unique(full_entries[-1][1])
                new = new[~torch.isin(new, known[-1])]
                known[-1] = torch.unique(torch.cat([known[-1], new]))
                self._check(sum(len(value) for _, _, value in full_entries))
            entries.append(_joined(full_entries))
        values = torch.cat([value for _, _, value in entries])
        self.smallest = float(values.min()) if len(values) else 1.0
        # (T, Tᵀ) of the step to position t = 0, 1, …; those not listed are like the last.
        self.steps = [
            self._sparse(entry, known[t], known[min(t + 1, len(known) - 1)], device)
            for t, entry in enumerate(entries)
        ]
        self.newest = [(states % self.vocab).to(device) for states in known[1:]]
        self.by_token = [self._group(newest) for newest in self.newest]

    def _expand(self, states: Tensor, t: int) -> Entries:
        """All steps of positive probability from these histories to position t."""
        if isinstance(self.law, ChainLaw) and t:  # its kernel is sparse already
            return _arcs(self.law, states)
        parts, past = [], min(t, self.law.order)
        for part in chunks(len(states), 2**22 // self.vocab):
            probs = self.law.step_probs(t, histories(states[part], past, self.vocab)).cpu()
            row, token = probs.nonzero(as_tuple=True)
            source = states[part][row]
            # A history of `order` tokens loses its oldest; a shorter one grows.
            suffix = source % self.vocab ** (past - 1) if past == self.law.order else source
            parts.append((source, suffix * self.vocab + token, probs[row, token].to(torch.float64)))
            self._check(sum(len(row) for row, _, _ in parts))
        return _joined(parts)

    def _check(self, count: int) -> None:
        if count > TRANSITIONS:
            raise MaskwalkError(
                f"The lifted chain of this order-{self.law.order} law on {self.vocab} nodes has "
                f"{self.vocab**self.full:,} states and more than {TRANSITIONS:,} transitions "
                "between them, too many to store. Take fewer nodes, a sparser graph or a lower "
                "order."
            )

    def _sparse(
        self, entries: Entries, before: Tensor, after: Tensor, device: torch.device
    ) -> tuple[Sparse, Sparse]:
        source = torch.searchsorted(before, entries[0]).to(device)
        target = torch.searchsorted(after, entries[1]).to(device)
        value = entries[2].to(device)
        shape = (len(after), len(before))
        return Sparse(target, source, value, shape), Sparse(source, target, value, shape[::-1])

    def _group(self, newest: Tensor) -> Sparse:
        """Sums over the states that end in each token."""
        ones = torch.ones(len(newest), dtype=torch.float64, device=newest.device)
        index = torch.arange(len(newest), device=newest.device)
        return Sparse(newest, index, ones, (self.vocab, len(newest)))

    def marginals(
        self, tokens: Int[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "batch length vocab"], Bool[Tensor, " batch"]]:
        """Weights of every token at every position (zero if the canvas is impossible), and which
        canvases are possible."""
        forward = self.forward(tokens)
        weights = forward[0].new_empty((*tokens.shape, self.vocab))
        message = torch.ones_like(forward[-1])
        for t in reversed(range(self.length)):
            depth = min(t, len(self.newest) - 1)
            weights[:, t] = (self.by_token[depth] @ (forward[t] * message)).T
            if t:
                _, back = self.steps[min(t, len(self.steps) - 1)]
                message = _scaled(back @ self._observe(message, tokens[:, t], depth))
        return weights, forward[-1].amax(0) > 0

    def forward(
        self, tokens: Int[Tensor, "batch length"], only_signs: bool = False
    ) -> list[Float[Tensor, "states batch"]]:
        """The forward message at each position; signs alone cannot underflow."""
        message = torch.ones((1, len(tokens)), dtype=torch.float64, device=tokens.device)
        messages = []
        for t in range(self.length):
            step, _ = self.steps[min(t, len(self.steps) - 1)]
            message = self._observe(step @ message, tokens[:, t], min(t, len(self.newest) - 1))
            message = message.sign() if only_signs else _scaled(message)
            messages.append(message)
        return messages

    def _observe(self, message: Tensor, tokens: Tensor, depth: int) -> Tensor:
        """Zero wherever the newest token is not the revealed one."""
        newest = self.newest[depth][:, None]
        return message * ((tokens == newest) | (tokens == self.vocab))


def _arcs(law: ChainLaw, states: Tensor) -> Entries:
    """The steps of a first-order law from these nodes."""
    rows = law.kernel[states.numpy()]
    source = torch.from_numpy(np.repeat(states.numpy(), np.diff(rows.indptr)))
    return source, torch.from_numpy(rows.indices.astype(np.int64)), torch.from_numpy(rows.data)


def _joined(parts: list[Entries]) -> Entries:
    source, target, value = (torch.cat(columns) for columns in zip(*parts))
    return source, target, value


def _scaled(message: Tensor) -> Tensor:
    size = message.amax(0)
    return message / torch.where(size > 0, size, 1.0)
