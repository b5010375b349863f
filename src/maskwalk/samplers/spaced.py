"""Spaced: another policy's picks, less those too close to each other.

Go through the inner policy's picks in the order of its score (max p_i if it has none; ties as
decode was told) and accept one only if it is at least `gap` positions from every accepted one.
The first is always accepted. Defaults: the 4 most confident, gap 2 (no neighbours).

`start` = g₀ makes the gap adaptive: max(gap, ⌊m g₀ / N⌋), m of the N positions masked at first
being masked still (inside a block, of the block's), so it is g₀ at first and relaxes to `gap`.

Source: this project, after DUS [arXiv 2506.19037], whose strides are a fixed version of it, and
whose filter for the picks of others (§ 4.4; g₀ = 8 in blocks of 32, `start_stride`) is the adaptive
one: blocks(32, spaced(threshold(0.5), start=8)), as its repository's README defines it (the code
was not at hand). In a Markov law the dependence that parallel drawing ignores decays with distance,
so the gap buys most of what one at a time would.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import whole
from maskwalk.samplers.parts.inner import Default, Inner, policy
from maskwalk.samplers.parts.views import ask_once
from maskwalk.specs import Spec

TOTAL = "masked at first"  # what is remembered beside the inner policy's
FOUR = Default("confidence", (), {"block": 4})


@SAMPLERS.register("spaced")
@dataclass(frozen=True)
class Spaced(UnmaskingPolicy):
    """Another policy's picks in score order, each at least `gap` from those accepted."""

    inner: Inner = FOUR
    gap: int = 2
    start: int | None = None
    added_later: ClassVar[tuple[str, ...]] = ("start",)
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"inner": Spec("confidence", (), {"block": block}), "gap": gap}
        for block, gap in ((4, 4), (4, 2), (8, 3), (8, 2))
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", policy("inner", self.inner))
        whole("gap", self.gap, 1)
        if self.start is not None:
            whole("start", self.start, 1)

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the inner policy remembers from one block to the next."""
        return policy("inner", self.inner).lasting

    def init(self, canvas: Canvas) -> State:
        """What the inner policy remembers; for an adaptive gap, how many were masked at first."""
        state = policy("inner", self.inner).init(canvas)
        return state if self.start is None else state | {TOTAL: canvas.masked.sum(1)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The picks that keep their distance."""
        inner = policy("inner", self.inner)
        own = {name: value for name, value in state.items() if name == TOTAL}
        known = {name: value for name, value in state.items() if name != TOTAL}
        ask_once(view, inner)
        scores = view.score(inner.ranks_by or "confidence")  # before less than all is asked for
        left, state = inner.choose(view, known, rng)
        gap = self._gap(view, own)
        accepted = torch.zeros_like(left)
        while bool(left.any()):
            best = view.lowest(scores, 1, left)
            accepted |= best
            at = torch.where(best, view.place, -view.span).amax(1, keepdim=True)
            left = left & ((view.place - at).abs() >= gap)
        return accepted, state | own

    def _gap(self, view: View, own: State) -> Int[Tensor, "batch 1"] | int:
        """The least distance in each row."""
        if self.start is None:
            return self.gap
        wide = view.masked.sum(1) * self.start // own[TOTAL].clamp(min=1)
        return wide.clamp(min=self.gap)[:, None]
