"""Corrected: a fast policy, then a look back, then bisection where the look back found fault.

Run the inner policy to the end. Then, `passes` times: ask for every token not given what the others
say of it, in two calls (even positions given the odd ones and what was given, then the reverse);
mask those with p_i(x_i) < floor · max p_i; refill what is masked by bisection. A pass that finds
nothing ends the sequence. Defaults: random 8 at a time, floor 0.05, one pass.

Source: the paper's future work (§ conclusion); cousins are ReMDM and P2, which look back in every
round. Calls: the inner policy's, 2 a pass, and at most ⌈log₂(l + 1)⌉ for the longest masked run l.
A floor near 0 touches only what is all but impossible given the rest; a large one also takes back
tokens that are merely unlikely, which biases the law towards likely ones.
"""

from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import real, whole
from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.parts.inner import Default, Inner, policy
from maskwalk.samplers.parts.support import support
from maskwalk.samplers.parts.views import Part
from maskwalk.specs import Spec

EIGHT = Default("random", (), {"block": 8})


@SAMPLERS.register("corrected")
@dataclass(frozen=True)
class Corrected(Sampler):
    """Remasks: another policy, then masks poorly supported tokens and refills by bisection."""

    inner: Inner = EIGHT
    floor: float = 0.05
    passes: int = 1
    remasks: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"inner": EIGHT, "floor": 0.05},
        {"inner": EIGHT, "floor": 0.5},
        {"inner": Spec("random", (), {"block": 24}), "floor": 0.5, "passes": 3},
        {"inner": Spec("random", (), {"block": 4}), "floor": 0.5},
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", policy("inner", self.inner))
        real("floor", self.floor, 1e-300, 1.0)
        whole("passes", self.passes, 1, 1000)

    def init(self, canvas: Canvas) -> State:
        """`left`: passes to come; `refill`: whether the first one has begun."""
        left = torch.full_like(canvas.tokens[:, 0], self.passes)
        state = policy("inner", self.inner).init(canvas)
        inner = {f"inner {name}": value for name, value in state.items()}
        return {"left": left, "refill": torch.zeros_like(left)} | inner

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Complete, and nothing more to look back at."""
        done = canvas.given.all(1) | (canvas.state["left"] == 0)
        return ~canvas.masked.any(1) & done

    def max_rounds(self, length: int) -> int:
        """The inner policy's, and for each pass a look back and a refill."""
        return policy("inner", self.inner).max_rounds(length) + self.passes * (1 + length)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Complete rows look back; the others go on, with the inner policy or by bisection."""
        full = ~canvas.masked.any(1)
        after = self._fill(canvas, denoise, rng) if not bool(full.all()) else canvas
        if bool(full.any()):
            after = self._look_back(after, denoise, full)
        return after

    def _fill(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        state, view = canvas.state, View(canvas, denoise, rng)
        refill = state["refill"][:, None] > 0
        inner = {name[6:]: value for name, value in state.items() if name.startswith("inner ")}
        first = Part(view, ~refill.expand_as(view.masked))
        fast, inner = policy("inner", self.inner).choose(first, inner, rng)
        again = Part(view, refill.expand_as(view.masked))
        slow, _ = Bisection().choose(again, {"turn": torch.zeros_like(canvas.tokens)}, rng)
        chosen = fast | slow
        new = state | {f"inner {name}": value for name, value in inner.items()}
        return canvas.reveal(chosen, rng.draw(view.take_marginals(chosen), chosen), new)

    def _look_back(self, canvas: Canvas, denoise: Denoiser, full: Tensor) -> Canvas:
        own, best = support(canvas, denoise, full[:, None] & ~canvas.given)
        poor = own < best + log(self.floor)
        left = torch.where(poor.any(1), canvas.state["left"] - 1, 0)
        state = canvas.state | {
            "left": torch.where(full, left, canvas.state["left"]),
            "refill": torch.where(full, 1, canvas.state["refill"]),
        }
        return replace(canvas, tokens=canvas.tokens.masked_fill(poor, canvas.mask_id), state=state)
