"""Reveal the largest set whose estimated total correlation stays under a budget. No oracle.

A call teaches more than the next tokens: when position j is revealed, KL(p_i after ‖ p_i before) at
a position i that stays masked is an unbiased estimate of the information j carries about i. So each
sequence learns, from calls it makes anyway,

    open(d)   information between positions d apart with nothing revealed between them: the mean of
              what was seen at d, and never more than at a smaller distance
    pass(w)   the share of it that gets past w revealed neighbours (0 for a law of order ≤ w)

and takes I(i, j) ≈ min(H_i, H_j, open(|i−j|) · pass(w)). What it has not seen it assumes to be as
bad as it can be, open = ∞ and pass = 1, so the first round reveals one position (or several that
are nearly certain). A set i_1 < i_2 < … then costs Σ I(i_k, i_{k+1}), the total correlation if each
position depends on the set before it through its neighbour only; the largest set within the budget
(of these one near the centres of the gaps) is found by dynamic programming. One call per round.

Source: this project. A close relative is the entropy bound of EB-Sampler [arXiv 2505.24857], which
uses min(H_i, H_j) alone.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real
from maskwalk.samplers.parts.information import WIDEST, information, learn
from maskwalk.samplers.parts.largest_set import largest_set


@SAMPLERS.register("dependence_bounded")
@dataclass(frozen=True)
class DependenceBounded(UnmaskingPolicy):
    """The largest set whose dependence, estimated from its own calls, is within `budget` nats."""

    budget: float | int = 0.1
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"budget": b} for b in (0.1, 0.5, 2.0))

    def __post_init__(self) -> None:
        real("budget", self.budget, 0.0)

    def init(self, canvas: Canvas) -> State:
        """Nothing seen yet."""
        batch, length = canvas.tokens.shape
        device = canvas.tokens.device

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        return {
            "known": torch.zeros(batch, dtype=torch.bool, device=device),  # whether one was seen
            "masked": canvas.masked,  # before the last round
            "probs": zeros(batch, length, 1),  # the marginals of the last round
            "seen": zeros(batch, length),  # information seen at each distance, and how often
            "times": zeros(batch, length),
            "passed": zeros(batch, WIDEST + 1),  # what came past walls, and what open would give
            "expected": zeros(batch, WIDEST + 1),
        }

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """Learns from the last round, then takes the largest set within the budget."""
        packed = view.log_marginals.to(torch.float64).exp()
        probs = packed.new_zeros((*view.masked.shape, packed.shape[1]))
        probs[view.masked] = packed
        learnt = learn(view, state, probs)
        state = {
            name: torch.where(state["known"].view(-1, *[1] * (x.ndim - 1)), learnt[name], x)
            for name, x in (state | {"probs": probs}).items()
        }
        cost = information(view, state)
        chosen = largest_set(view.masked, cost, float(self.budget))
        known = torch.ones_like(state["known"])
        return chosen, state | {"masked": view.masked, "known": known}
