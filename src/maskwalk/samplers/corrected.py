"""Corrected: a fast policy, then a look back, then bisection where the look back found fault.

Run the inner sampler to the end. Then, `passes` times: ask for every token not given what the
others say of it, in two calls (even positions given the odd ones and what was given, then the
reverse); mask those with p_i(x_i) < floor · max p_i; refill what is masked by bisection. A pass
that finds nothing ends the sequence. Defaults: random 8 at a time, floor 0.05, one pass.

Source: the paper's future work (§ conclusion); cousins are ReMDM and P2, which look back in every
round. Calls: the inner sampler's, 2 a pass, and at most ⌈log₂(l + 1)⌉ for the longest masked run l.
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
from maskwalk.decoding.counting import asking_for
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, real, whole
from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.parts.inner import Default, Inner, sampler
from maskwalk.samplers.parts.rows import written
from maskwalk.samplers.parts.support import support
from maskwalk.specs import Spec

EIGHT = Default("random", (), {"block": 8})


@SAMPLERS.register("corrected")
@dataclass(frozen=True)
class Corrected(Sampler):
    """Remasks: another sampler, then masks poorly supported tokens and refills by bisection."""

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
        inner = sampler("inner", self.inner)
        if inner.remasks:
            raise MaskwalkError(
                f"inner must be a sampler that keeps what it reveals; {inner!r} takes tokens back."
            )
        object.__setattr__(self, "inner", inner)
        real("floor", self.floor, 1e-300, 1.0)
        whole("passes", self.passes, 1, 1000)

    def init(self, canvas: Canvas) -> State:
        """`left`: passes to come; `refill`: whether the first one has begun."""
        left = torch.full_like(canvas.tokens[:, 0], self.passes)
        state = sampler("inner", self.inner).init(canvas)
        inner = {f"inner {name}": value for name, value in state.items()}
        return {"left": left, "refill": torch.zeros_like(left)} | inner

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Complete, and nothing more to look back at."""
        done = canvas.given.all(1) | (canvas.state["left"] == 0)
        return ~canvas.masked.any(1) & done

    def max_rounds(self, length: int) -> int:
        """The inner sampler's, and for each pass a look back and a refill."""
        return sampler("inner", self.inner).max_rounds(length) + self.passes * (1 + length)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Complete rows look back; the others go on, with the inner sampler or by bisection."""
        full, refill = ~canvas.masked.any(1), canvas.state["refill"] > 0
        after = canvas
        for rows, again in ((~full & ~refill, False), (~full & refill, True)):
            if bool(rows.any()):
                after = self._fill(after, denoise, rng, rows, again)
        return self._look_back(after, denoise, full) if bool(full.any()) else after

    def _fill(
        self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams, rows: Tensor, again: bool
    ) -> Canvas:
        """One round on some of the rows: no rule ever sees one where nothing is masked."""
        rule: Sampler = Bisection() if again else sampler("inner", self.inner)
        some = canvas.select(rows)
        known = {name[6:]: x for name, x in some.state.items() if name.startswith("inner ")}
        # Bisection of single positions plans anew in every round: it has nothing to remember.
        some = replace(some, state=rule.init(some) if again else known)
        after = rule.step(some, asking_for(denoise, rows), rng.on(rows))
        state = dict(canvas.state)
        for name, value in after.state.items() if not again else ():
            state[f"inner {name}"] = written(state[f"inner {name}"], rows, value)
        return replace(canvas, tokens=written(canvas.tokens, rows, after.tokens), state=state)

    def _look_back(self, canvas: Canvas, denoise: Denoiser, full: Tensor) -> Canvas:
        own, best = support(canvas, denoise, full[:, None] & ~canvas.given)
        poor = own < best + log(self.floor)
        left = torch.where(poor.any(1), canvas.state["left"] - 1, 0)
        state = canvas.state | {
            "left": torch.where(full, left, canvas.state["left"]),
            "refill": torch.where(full, 1, canvas.state["refill"]),
        }
        return replace(canvas, tokens=canvas.tokens.masked_fill(poor, canvas.mask_id), state=state)
