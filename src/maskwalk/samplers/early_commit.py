"""Early commit: another policy until the answer is clear, then everything that is left at once.

With the gap g_i = log p⁽¹⁾ − log p⁽²⁾ of the two likeliest tokens at a masked position, ḡ its mean
over the masked positions, and s the share of the positions masked at first that is revealed after
this round, reveal all that is left if

    ḡ ≥ `early` while s < .33,   ḡ ≥ `mid` while s < .67,   ḡ ≥ `late` from then on,

else what the inner policy chooses. Defaults 7.5, 5, 2.5 nats, one most confident position a round.
`over="least"` asks the smallest gap instead of the mean. A gap counts as at most 50 nats, so that a
certain token (an infinite gap) does not decide for all.

Source: Prophet [arXiv 2508.19982]; pixeli99/Prophet 460afe4, generate_earlyexit.py. There ḡ is over
five positions from where an answer is expected, revealed ones too, s is the share of steps, which
is the same with LLaDA's even counts, and what is left is filled with argmaxes; here tokens are
drawn as everywhere. SlowFast and AdaBlock commit within blocks; as there the rule is
early_commit(inner=blocks(…)) over all blocks, and blocks(…, early_commit()) inside each.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import INF, Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import one_of, real
from maskwalk.samplers.parts.inner import Default, Inner, policy
from maskwalk.samplers.parts.views import ask_once

ONE = Default("confidence", (), {"block": 1})
MOST = 50.0  # nats a gap counts at most
PHASES = (0.33, 0.67)  # shares revealed at which the bar falls


@SAMPLERS.register("early_commit")
@dataclass(frozen=True)
class EarlyCommit(UnmaskingPolicy):
    """Another policy; all that is left at once when the two likeliest tokens are far apart."""

    inner: Inner = ONE
    early: float = 7.5
    mid: float = 5.0
    late: float = 2.5
    over: str = "mean"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"early": 2.5, "mid": 0.6, "late": 0.5},
        {"early": 1.0, "mid": 0.75, "late": 0.5},
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", policy("inner", self.inner))
        for name in ("early", "mid", "late"):
            real(name, getattr(self, name), 0.0, 1e6)
        one_of("over", self.over, ("mean", "least"))

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the inner policy remembers from one block to the next."""
        return tuple(f"inner {name}" for name in policy("inner", self.inner).lasting)

    def first_picks(self, length: int) -> range | None:
        """The inner policy's: where all tokens are alike nothing is clear."""
        return policy("inner", self.inner).first_picks(length)

    def init(self, canvas: Canvas) -> State:
        """What the inner policy remembers, and how many were masked at first."""
        inner = policy("inner", self.inner).init(canvas)
        return {"total": canvas.masked.sum(1)} | {f"inner {name}": x for name, x in inner.items()}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """Everything if it is clear, else the inner policy's choice."""
        inner = {name[6:]: x for name, x in state.items() if name.startswith("inner ")}
        ask_once(view, policy("inner", self.inner))
        gap = self._gap(view)  # before the inner policy, which may ask for less than everything
        chosen, inner = policy("inner", self.inner).choose(view, inner, rng)
        left = view.masked.sum(1)
        share = (state["total"] - left + chosen.sum(1)).to(torch.float64) / state["total"]
        bar = torch.where(share < PHASES[1], self.mid, self.late)
        bar = torch.where(share < PHASES[0], self.early, bar)
        clear = (gap >= bar - view.score_grid / 2)[:, None]
        kept = {f"inner {name}": x for name, x in inner.items()}
        return torch.where(clear, view.masked, chosen), {"total": state["total"]} | kept

    def _gap(self, view: View) -> Float64[Tensor, " batch"]:
        """The mean or the least gap of each row."""
        table = view.log_marginals
        if table.shape[1] == 1:  # a single token is certain
            return torch.full_like(view.masked[:, 0], MOST, dtype=torch.float64)
        top = table.topk(2, -1).values.to(torch.float64)
        gap = view.unpack((top[:, 0] - top[:, 1]).clamp(max=MOST))
        if self.over == "least":
            return gap.amin(1)
        return gap.masked_fill(gap == INF, 0.0).sum(1) / view.masked.sum(1)
