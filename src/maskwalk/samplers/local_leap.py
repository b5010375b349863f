"""Local leap: near a sure position, a lower bar is enough.

With c_i = max p_i, the anchors are the masked i with c_i ≥ `anchor`; reveal them and every i within
`radius` of an anchor with c_i ≥ `near`; without anchors, argmax c_i. Defaults .9, .75, 4.

Source: LocalLeap [arXiv 2510.07081]. The public code takes argmax tokens and reads the drawn
token's probability, inside blocks; here any token may be drawn, and anchors are those of this round
only.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real, whole
from maskwalk.samplers.parts.picks import confidences, or_best


@SAMPLERS.register("local_leap")
@dataclass(frozen=True)
class LocalLeap(UnmaskingPolicy):
    """Positions surer than `anchor`, and those near one surer than `near`."""

    anchor: float = 0.9
    near: float = 0.75
    radius: int = 4
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"anchor": 0.95, "near": 0.9, "radius": 1},
        {"anchor": 0.9, "near": 0.75, "radius": 2},
        {"anchor": 0.9, "near": 0.75, "radius": 4},
        {"anchor": 0.8, "near": 0.5, "radius": 4},
    )

    def __post_init__(self) -> None:
        real("anchor", self.anchor, real("near", self.near, 0.0, 1.0), 1.0)
        whole("radius", self.radius, 0)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """Anchors and what is close to them."""
        sure = confidences(view) + view.score_grid / 2
        anchors = sure >= self.anchor
        radius = min(self.radius, anchors.shape[1])  # farther than the canvas is wide is nothing
        close = torch.nn.functional.max_pool1d(
            anchors.to(torch.float64)[:, None], 2 * radius + 1, stride=1, padding=radius
        )[:, 0]
        return or_best(view, anchors | ((close > 0) & (sure >= self.near))), state
