"""The truth, by listing every walk: only for small laws, and what the other oracles must equal.

    p_i(x) = Σ_{walks w that agree with what is revealed, w_i = x} ν(w) / Σ_{walks that agree} ν(w)

Impossible evidence takes the limit of a vanishing leak (see base.py) by listing all V^L sequences.
A sequence has weight ∏_t (p_t + ε); its lowest power of ε is its number of impossible steps and the
coefficient of it is the product of its possible ones. The limit keeps the lowest power in sight.
"""

from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import normalise
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.walks.oracles.base import Oracle, chunks

LIMIT = 2 * 10**6  # sequences of all kinds, listed for impossible evidence
WORKING = 2**23  # numbers in a chunk

Listing = tuple[Int[Tensor, "n length"], Int[Tensor, " n"], Float[Tensor, " n"]]


class EnumerationOracle(Oracle):
    """Exact marginals by summing over all walks of a small law."""

    def __init__(self, law: WalkLaw) -> None:
        super().__init__(law)
        self.law = law
        walks, log_probs = law.support()
        if not len(walks):
            raise MaskwalkError("This law has no walk of positive probability; check its kernel.")
        # Relative to the likeliest, so that a long walk's probability does not underflow.
        weights = (log_probs - log_probs.max()).exp()
        self._walks: Listing = (walks, torch.zeros_like(walks[:, 0]), weights)

    @cached_property
    def _sequences(self) -> Listing:
        """All V^L sequences: tokens, number of impossible steps, product of the possible ones."""
        vocab, length = self.vocab_size, self.length
        if vocab**length > LIMIT:
            raise MaskwalkError(
                f"No walk agrees with the revealed tokens, and the limit of a vanishing leak by "
                f"enumeration needs all {vocab}^{length} = {vocab**length:,} sequences; at most "
                f"{LIMIT:,} are listed. Use oracle_for(law), or shorter walks."
            )
        index = torch.arange(vocab**length)
        walks = torch.stack([index // vocab**d % vocab for d in reversed(range(length))], 1)
        impossible = torch.zeros_like(index)
        weights = torch.ones(len(walks), dtype=torch.float64)
        for t in range(length):
            for part in chunks(len(walks), WORKING // vocab):
                past = walks[part, max(0, t - self.order) : t]
                step = self.law.step_probs(t, past).gather(1, walks[part, t : t + 1])[:, 0]
                impossible[part] += step == 0
                weights[part] *= torch.where(step == 0, 1.0, step.to(torch.float64))
        return walks, impossible, weights

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Log-marginals of the places in `at`, packed."""
        places = self._places(tokens, at)
        asked = places.any(1)
        weights = tokens.new_zeros((*tokens.shape, self.vocab_size), dtype=torch.float64)
        weights[asked] = self._sum(tokens[asked], self._walks)
        impossible = asked & (weights.sum((1, 2)) == 0)
        self.impossible += int(impossible.sum())
        if bool(impossible.any()):
            weights[impossible] = self._sum(tokens[impossible], self._sequences)
        return normalise(weights[places])

    def _sum(self, tokens: Tensor, listing: Listing) -> Tensor:
        """Weights (batch, length, vocab) of the listed walks that agree and leak the least."""
        walks, leaks, weights = (x.to(tokens.device) for x in listing)
        result = tokens.new_zeros((*tokens.shape, self.vocab_size), dtype=torch.float64)
        for part in chunks(len(tokens), WORKING // len(walks)):
            some = tokens[part]
            agree = torch.ones((len(some), len(walks)), dtype=torch.bool, device=tokens.device)
            for i in range(self.length):
                agree &= (some[:, i, None] == self.mask_id) | (some[:, i, None] == walks[:, i])
            fewest = torch.where(agree, leaks, self.length + 1).amin(1, keepdim=True)
            row_weights = torch.where(agree & (leaks == fewest), weights, 0.0)
            for i in range(self.length):
                result[part, i] = result[part, i].index_add(1, walks[:, i], row_weights)
        return result
