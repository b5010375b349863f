"""A hidden Markov model: only emissions are tokens, so no number of them separates left from right.

    p(x) = Σ_z π(z_0) E(x_0 | z_0) ∏_t P(z_t | z_{t−1}) E(x_t | z_t)

Kernel and emissions are random and sparse: every state has a few successors (the next one among
them, so all are reached) and a few tokens.
"""

import numpy as np
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.exact.chain import ChainWorld, Column
from maskwalk.worlds.exact.chance import sparse_rows
from maskwalk.worlds.exact.listing import listed_entropy
from maskwalk.worlds.exact.world import neighbours
from maskwalk.worlds.world import WORLDS


@WORLDS.register("hmm")
class Hmm(ChainWorld):
    """Emissions of a hidden random chain; `successors` of a state and its `emissions` are few."""

    unambiguous = False

    def __init__(
        self,
        states: int = 16,
        tokens: int = 16,
        length: int = 24,
        successors: int = 2,
        emissions: int = 2,
        seed: int = 0,
    ) -> None:
        self.states, self.seed = whole("states", states, 1, 256), whole("seed", seed, 0, 2**63 - 1)
        whole("tokens", tokens, 1, 4096), whole("length", length, 1, 65_535)
        whole("successors", successors, 1, states), whole("emissions", emissions, 1, tokens)
        if states * successors * emissions > 200_000:
            raise MaskwalkError("This hidden chain has over 200,000 edges; take fewer states.")
        self.start_probs = np.full(states, 1.0 / states)
        self.kernel = sparse_rows(states, states, successors, seed, 0, chained=True)
        self.emission_probs = sparse_rows(states, tokens, emissions, seed, 1)
        super().__init__(tokens, self._columns(length), self.start_probs, np.ones(states))

    def _columns(self, length: int) -> list[Column]:
        """First: a state emits. Then: a state leads to another, which emits."""
        symbols = np.arange(self.emission_probs.shape[1])[:, None]
        state, token = np.nonzero(self.emission_probs)
        first = Column((0,), symbols, state, token, state, self.emission_probs[state, token])
        joint = self.kernel[:, :, None] * self.emission_probs[None]
        source, target, emitted = np.nonzero(joint)
        edges = (source, emitted, target, joint[source, target, emitted])
        return [first, *(Column((t,), symbols, *edges) for t in range(1, length))]

    def entropy(self) -> float | None:
        """By listing all sequences where that is possible; else None: estimate it from log_prob."""
        return listed_entropy(self)

    def pairs(self) -> list[tuple[int, int]]:
        """Neighbouring tokens."""
        return neighbours(self.length)

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The tokens; · is masked, ✗ stands before the first that cannot go on."""
        tokens = tokens.cpu()
        signs = [str(t) if t < self.vocab_size else "·" for t in tokens.tolist()]
        if "·" not in signs:
            fine = self.valid(tokens[None])[0].tolist()
            signs = [sign if right else f"✗{sign}" for sign, right in zip(signs, fine)]
        return " ".join(signs)
