"""Spaced: another policy's picks, less those too close to each other.

Go through the inner policy's picks in the order of its score (max p_i if it has none; ties as
decode was told) and accept one only if it is at least `gap` positions from every accepted one.
The first is always accepted. Defaults: the 4 most confident, gap 2 (no neighbours).

Source: this project, after DUS [arXiv 2506.19037], whose strides are a fixed version of it; in a
Markov law the dependence that parallel drawing ignores decays with distance, so the gap buys most
of what one at a time would.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import whole
from maskwalk.samplers.parts.inner import Default, Inner, policy
from maskwalk.specs import Spec

FOUR = Default("confidence", (), {"block": 4})


@SAMPLERS.register("spaced")
@dataclass(frozen=True)
class Spaced(UnmaskingPolicy):
    """Another policy's picks in score order, each at least `gap` from those accepted."""

    inner: Inner = FOUR
    gap: int = 2
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"inner": Spec("confidence", (), {"block": block}), "gap": gap}
        for block, gap in ((4, 4), (4, 2), (8, 3), (8, 2))
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", policy("inner", self.inner))
        whole("gap", self.gap, 1)

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the inner policy remembers from one block to the next."""
        return policy("inner", self.inner).lasting

    def init(self, canvas: Canvas) -> State:
        """What the inner policy remembers."""
        return policy("inner", self.inner).init(canvas)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The picks that keep their distance."""
        inner = policy("inner", self.inner)
        left, state = inner.choose(view, state, rng)
        scores = view.score(inner.ranks_by or "confidence")
        accepted = torch.zeros_like(left)
        while bool(left.any()):
            best = view.lowest(scores, 1, left)
            accepted |= best
            at = torch.where(best, view.place, -view.span).amax(1, keepdim=True)
            left = left & ((view.place - at).abs() >= self.gap)
        return accepted, state
