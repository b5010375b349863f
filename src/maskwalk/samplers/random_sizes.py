"""Random sizes: a random order whose block sizes are random too, with a bound on what it costs.

Each of the N masked positions draws a time u, uniform on (0, 1), once; round k of K reveals those
with t_{k−1} < u ≤ t_k (a round without any is left out). The times are fixed by `bound`:

    dtc   t_k = ((1 + N)^{k/K} − 1) / N         small rounds first, each larger by 1 + ε
    tc    t_k = 1 − ((1 + N)^{1−k/K} − 1) / N   small rounds last

with ε = (1 + N)^{1/K} − 1, about log(1 + N)/K. With perfect marginals KL(law ‖ sampler) is at most
ε (D + (TC + DTC)/N), hence at most 2 ε D, where D is the dual total correlation DTC of the tokens
given what is revealed, or their total correlation TC. Nothing need be known of the law, and K may
be far below N. Defaults K = 8, "tc".

Why: let f(t) be the mean entropy of a token where every other one is shown with probability t. The
cost is N Σ_k ∫ (f(t_{k−1}) − f(t)) dt over the rounds, and N ∫ (f(0) − f(t)) dt = TC,
N ∫ (f(t) − f(1)) dt = DTC; f falls, and neighbouring rounds differ by the factor 1 + ε.

Source: random unmasking sizes [arXiv 2602.20126], which shows Õ(TC/K) and Õ(DTC/K) for two choices
of them. Its abstract was at hand, not its text, and no public code was found: the times and the
constants here are ours, proved as above and tested by enumeration. It looks at no score, so the
denoiser is asked only at the chosen positions.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import ROUNDS, one_of, whole


@SAMPLERS.register("random_sizes")
@dataclass(frozen=True)
class RandomSizes(UnmaskingPolicy):
    """Random order in at most `steps` rounds of random sizes; the cost is bounded by TC or DTC."""

    steps: int = 8
    bound: str = "tc"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"steps": 3},
        {"steps": 8, "bound": "dtc"},
        {"steps": 16},
    )

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)
        one_of("bound", self.bound, ("tc", "dtc"))

    def first_picks(self, length: int) -> range:
        """Any position, always."""
        return range(length)

    def init(self, canvas: Canvas) -> State:
        """The round each position falls to; 0: not drawn yet."""
        return {"turn": torch.zeros_like(canvas.tokens)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """All positions of the next round that has any."""
        fresh = ~(state["turn"] > 0).any(1, keepdim=True)
        turn = torch.where(fresh, self._turns(view, rng), state["turn"])
        now = turn.masked_fill(~view.masked, self.steps + 1)
        return view.masked & (now == now.amin(1, keepdim=True)), {"turn": turn}

    def _turns(self, view: View, rng: RoundStreams) -> Int[Tensor, "batch length"]:
        """The round whose times enclose each position's."""
        total = view.masked.sum(1, keepdim=True).to(torch.float64)
        u = rng.uniform()
        if self.bound == "dtc":
            share = torch.log1p(total * u) / torch.log1p(total)
        else:
            share = 1 - torch.log1p(total * (1 - u)) / torch.log1p(total)
        return (share * self.steps).ceil().to(torch.int64).clamp(1, self.steps)
