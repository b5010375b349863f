"""Order-k bisection: exact for laws of order at most k.

Every maximal masked run of l positions starting at a reveals its middle block of r = min(k, l)
positions, a + (l - r) // 2 onwards, one after another; all runs in parallel. A revealed block of k
neighbours separates what lies left of it from what lies right, so the next runs are independent.
At most k ⌈log₂(l/k + 1)⌉ calls.

`along="world"` takes the separators the world itself names (columns of a strip, digit columns of a
sum, nodes of a tree) instead of blocks in the line of tokens: exact wherever a world has some,
however it is written down. The number of calls is the longest path of masked positions through the
nested separators; `order` says nothing there.

Source: the paper, Algorithm 1. Related orders: DUS's binary scheduler, hierarchy decoding in
dInfer, Halton/van der Corput orders.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import MaskwalkError, one_of, whole
from maskwalk.samplers.parts.runs import runs
from maskwalk.worlds.separators import Separator, turns
from maskwalk.worlds.world import World


@SAMPLERS.register("bisection")
@dataclass(frozen=True)
class Bisection(UnmaskingPolicy):
    """Middle block of `order` positions of every masked run, or the world's own separators."""

    order: int = 1
    along: str = "line"
    world: World | None = field(default=None, repr=False, compare=False)
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"order": k} for k in (1, 2, 4, 8))
    added_later: ClassVar[tuple[str, ...]] = ("along",)

    def __post_init__(self) -> None:
        whole("order", self.order, 1)
        one_of("along", self.along, ("line", "world"))
        if self.along == "world" and self.world is not None:
            self._separators(self.world)

    @property
    def needs_world(self) -> bool:
        """Along the world it has to know which."""
        return self.along == "world"

    def _separators(self, world: World | None) -> Separator:
        """The world's, or a sentence."""
        if world is None:
            raise MaskwalkError(
                "bisection(along='world') has to know its world: give it "
                "Bisection(along='world').in_world(world), or name a world in the command."
            )
        separators: Separator | None = getattr(world, "separators", lambda: None)()
        if separators is None:
            raise MaskwalkError(
                f"{type(world).__name__} names no separators, so bisection cannot go along it. Use "
                "bisection(order=k), or a world that has some: addition, potts, walks, "
                "hierarchy(nodes='shown')."
            )
        return separators

    def init(self, canvas: Canvas) -> State:
        """No plan yet in the line; the whole plan along the world."""
        if self.along == "world":
            return {"turn": turns(self._separators(self.world), canvas.masked)}
        return {"turn": torch.zeros_like(canvas.tokens)}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The next position of every middle block; a new plan where the last one is done."""
        turn = torch.where(view.masked, state["turn"], 0)
        if self.along == "line":
            turn = torch.where((turn > 0).any(1, keepdim=True), turn, self._plan(view.masked))
        never = turn.shape[1] + 1
        now = torch.where(turn > 0, turn, never).amin(1, keepdim=True)
        return turn == now, {"turn": turn}

    def _plan(self, masked: Tensor) -> Tensor:
        """1, 2, …, r along the middle block of every masked run, 0 elsewhere."""
        start, size = runs(masked)
        width = size.clamp(max=self.order)
        place = torch.arange(masked.shape[1], device=masked.device)
        turn = place - start - (size - width) // 2 + 1
        return torch.where(masked & (turn >= 1) & (turn <= width), turn, 0)
