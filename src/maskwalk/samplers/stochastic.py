"""Stochastic: Gumbel noise on the scores another policy ranks by.

Every score s_i (lower is sooner) becomes s_i − T m g_i, with g_i standard Gumbel and m the share of
the positions masked at first that are masked still (`anneal`; m = 1 without): inside a block, of
the block's; what was given does not count. With one pick a round position i is then drawn
with probability ∝ exp(−s_i/(T m)). Default T = 0.5 on the most confident position.

Source: MaskGIT [arXiv 2202.04200] (choice temperature 4.5 on log p of the *drawn* token, annealed
to zero). Here the noise moves only the order of positions: token probabilities, thresholds and
budgets stay what they are. Public code where the noise leaks into confidences ranks by numbers that
are not probabilities.
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
from maskwalk.samplers.parts.inner import Default, Inner, policy
from maskwalk.samplers.parts.views import Noisy, gumbel
from maskwalk.specs import Spec
from maskwalk.streams import Purpose

ONE = Default("confidence", (), {"block": 1})


@SAMPLERS.register("stochastic")
@dataclass(frozen=True)
class Stochastic(UnmaskingPolicy):
    """Another policy with Gumbel noise of `temperature` on its scores."""

    inner: Inner = ONE
    temperature: float = 0.5
    anneal: bool = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"inner": Spec("confidence", (), {"block": block}), "temperature": temperature}
        for block, temperature in ((1, 0.5), (2, 0.1), (2, 0.5), (4, 0.5))
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", policy("inner", self.inner))
        real("temperature", self.temperature, 0.0)

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the inner policy remembers from one block to the next."""
        return tuple(f"inner {name}" for name in policy("inner", self.inner).lasting)

    @property
    def reveals_one(self) -> bool:
        """As the inner policy."""
        return policy("inner", self.inner).reveals_one

    def first_picks(self, length: int) -> range | None:
        """As the inner policy's: the noise is alike everywhere."""
        return policy("inner", self.inner).first_picks(length)

    def init(self, canvas: Canvas) -> State:
        """What the inner policy remembers, and how many were masked at first."""
        inner = policy("inner", self.inner).init(canvas)
        return {"total": canvas.masked.sum(1)} | {f"inner {name}": x for name, x in inner.items()}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The inner policy's choice by noisy scores."""
        inner = {name[6:]: x for name, x in state.items() if name.startswith("inner ")}
        share = (view.masked.sum(1) / state["total"].to(torch.float64))[:, None]
        noise = self.temperature * (share if self.anneal else 1.0)
        noisy = Noisy(view, noise * gumbel(rng.uniform(Purpose.NOISE)))
        chosen, inner = policy("inner", self.inner).choose(noisy, inner, rng)
        return chosen, {"total": state["total"]} | {f"inner {n}": x for n, x in inner.items()}
