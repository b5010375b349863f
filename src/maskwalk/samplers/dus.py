"""Dilated unmasking: ever finer strides, whatever the scores.

Over B positions 0..B−1 the strides are s_t = ⌊B/a^t⌋, t = 1, 2, … while s_t ≥ 1; level t holds the
positions that are multiples of s_t and in no level before, leftovers form the last one. A last
level smaller than the one before is merged with it (`merge`). Round t reveals level t: about
log_a B calls. Defaults: a = 2, merged, nothing skipped.

`skip` > 0 (.3 in the public code) puts off positions with max p_i < skip to the next level's round;
a round in which all are put off reveals the most confident of them.

Source: DUS [arXiv 2506.19037]. B is the block of a semi-autoregressive decoder there; here the
whole canvas, or a block inside blocks(size, dus()). With `skip` the public code often ends with
positions that are still masked; here all are revealed in the end. The merge saves a call and costs
exactness: with B = 5 and both ends given it reveals 1, 2 and 3 at once, where 2 first would have
made the rest independent.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import real, whole
from maskwalk.samplers.parts.picks import confidences, or_best
from maskwalk.samplers.parts.views import Part


@SAMPLERS.register("dus")
@dataclass(frozen=True)
class Dus(UnmaskingPolicy):
    """Dilated strides B/base, B/base², …, one level per round."""

    base: int = 2
    merge: bool = True
    skip: float = 0.0
    placed: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"base": base} for base in (2, 3, 4, 8))

    def __post_init__(self) -> None:
        whole("base", self.base, 2)
        real("skip", self.skip, 0.0, 1.0)

    def init(self, canvas: Canvas) -> State:
        """`level`: the last one whose turn has come."""
        return {"level": torch.full_like(canvas.tokens[:, 0], -1)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The next level that has masked positions, and what was put off before."""
        level = self.levels(view.span).to(view.place.device)[view.place]
        first = level.masked_fill(~view.masked, view.span).amin(1)
        now = torch.maximum(state["level"] + 1, first)
        chosen = view.masked & (level <= now[:, None])
        if self.skip > 0:
            part = Part(view, chosen)
            chosen = or_best(part, confidences(part) >= self.skip - view.score_grid / 2)
        return chosen, {"level": now}

    def levels(self, span: int) -> Int[Tensor, " span"]:
        """The level of every position of a block of `span`."""
        level = torch.full((span,), -1)
        stride, last = span // self.base, 0
        while stride >= 1:
            new = (level < 0) & (torch.arange(span) % stride == 0)
            level[new] = last
            stride, last = stride // self.base, last + int(new.any())
        level[level < 0] = last
        size = torch.bincount(level).tolist()
        smaller = self.merge and len(size) > 1 and size[-1] < size[-2]
        return level.clamp(max=len(size) - (2 if smaller else 1))
