"""The exact oracle of a law of any order: forward–backward on the chain of its histories.

See lattice.py for the messages and leaks.py for impossible evidence. Here: what is too large to
try, equal canvases answered once, and sequences taken in chunks so that memory stays bounded.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import normalise
from maskwalk.errors import MaskwalkError
from maskwalk.resources import available_memory
from maskwalk.worlds.sizes import CALLS, check_messages
from maskwalk.worlds.walks.laws import ChainLaw, WalkLaw
from maskwalk.worlds.walks.oracles.base import TOO_SMALL, Oracle, chunks
from maskwalk.worlds.walks.oracles.chain_leaks import ChainLeaks
from maskwalk.worlds.walks.oracles.lattice import Lattice
from maskwalk.worlds.walks.oracles.leaks import Leaks

LIMIT = 2 * 10**9  # bytes of forward messages that one sequence may take
WORKING = 2**25  # numbers in the forward messages of a chunk of sequences (256 MB)


class LiftedOracle(Oracle):
    """Exact marginals of a law of any order that has few enough histories."""

    def __init__(self, law: WalkLaw, limit: int = LIMIT) -> None:
        super().__init__(law)
        depth = min(law.order, law.length)
        states = law.vocab_size**depth
        size = 8 * states * law.length
        limit = min(limit, available_memory() // 2)
        if size > limit:
            raise MaskwalkError(
                f"The lifted chain of an order-{law.order} law on {law.vocab_size} nodes has "
                f"{law.vocab_size}^{depth} = {states:,} states; the messages of one sequence "
                f"would take {size / 1e9:,.0f} GB, more than the {limit / 1e9:g} GB "
                "allowed. No exact oracle is possible at this size: take fewer nodes or a lower "
                "order, or train a denoiser."
            )
        self.law = law
        self._lattices: dict[torch.device, Lattice] = {}
        self._leaks: dict[torch.device, Leaks | ChainLeaks] = {}

    def check_rows(self, rows: int, calls: int = CALLS) -> None:
        """Refuses more sequences than can be answered for in a few hours."""
        states = self.law.vocab_size ** min(self.law.order, 1)
        check_messages(rows, self.length, states, 4 * states, calls)

    def lattice(self, device: torch.device) -> Lattice:
        """The lifted chain on a device, built when first asked for."""
        if device not in self._lattices:
            self._lattices[device] = Lattice(self.law, device)
        return self._lattices[device]

    def leaks(self, device: torch.device) -> Leaks | ChainLeaks:
        """The kernel with leaks on a device, built when evidence is first impossible."""
        if device not in self._leaks:
            self._leaks[device] = (
                ChainLeaks(self.law, device)
                if isinstance(self.law, ChainLaw)
                else Leaks(self.law, device)
            )
        return self._leaks[device]

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Log-marginals of the places in `at`, packed."""
        row, column = self._places(tokens, at).nonzero(as_tuple=True)
        # Equal canvases have equal answers: a batch of fresh canvases costs as much as one.
        canvases, which = torch.unique(tokens[row], dim=0, return_inverse=True)
        wanted = torch.zeros_like(canvases, dtype=torch.bool)
        wanted[which, column] = True
        index = wanted.flatten().cumsum(0).view_as(wanted) - 1
        answer = tokens.new_empty((int(wanted.sum()), self.vocab_size), dtype=torch.float64)
        possible = self._fill_possible(answer, canvases, wanted, index)
        (rows,) = (~possible).nonzero(as_tuple=True)
        if len(rows):
            self.impossible += len(row[~possible[which]].unique())
            weights = self.leaks(tokens.device).marginals(canvases[rows])
            answer[index[rows][wanted[rows]]] = normalise(weights[wanted[rows]])
        return answer[index[which, column]]

    def _fill_possible(
        self, answer: Tensor, canvases: Tensor, wanted: Tensor, index: Tensor
    ) -> Bool[Tensor, " canvases"]:
        """Answers for the canvases that are possible and says which they are."""
        lattice = self.lattice(canvases.device)
        possible = torch.zeros_like(canvases[:, 0], dtype=torch.bool)
        states = max(len(newest) for newest in lattice.newest)
        for part in chunks(len(canvases), WORKING // (states * self.length)):
            some = canvases[part]
            weights, possible[part] = lattice.marginals(some)
            answer[index[part][wanted[part]]] = normalise(weights[wanted[part]])
            if lattice.smallest**self.length < 1e-290:
                # So long a walk may only look impossible: follow the signs.
                signs = lattice.forward(some[~possible[part]], only_signs=True)[-1]
                if bool((signs > 0).any()):
                    raise MaskwalkError(TOO_SMALL)
        return possible
