"""Corrected: a fast policy, then a look back, then bisection where the look back found fault.

Run the inner sampler to the end. Then, `passes` times: look for tokens that do not fit, mask them,
refill what is masked by bisection. A pass that finds nothing ends the sequence. Who finds fault:

    check="support"   the denoiser, in two calls: even positions given the odd ones and what was
                      given, then the reverse; masked are those with p_i(x_i) < floor · max p_i
    check="self"      the denoiser, in one call: the same rule with what it says *at* the revealed
                      tokens, for models trained on their own mistakes (training/maskings.py)
    check="world"     a verifier, no call: where the world says that the sequence breaks, the token
                      and the one before it (verifier-guided remasking)

Defaults: random 8 at a time, support, floor 0.05, one pass.

Source: the paper's future work (§ conclusion); cousins are ReMDM and P2, which look back in every
round. Calls: the inner sampler's, the check's in each pass, and at most ⌈log₂(l + 1)⌉ for the
longest masked run l. A floor near 0 touches only what is all but impossible given the rest; a large
one also takes back tokens that are merely unlikely, which biases the law towards likely ones.
"""

from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.counting import asking_for
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.parts.inner import Default, Inner, sampler
from maskwalk.samplers.parts.phases import inner_round, inner_state
from maskwalk.samplers.parts.rows import written
from maskwalk.samplers.parts.support import own_support, support
from maskwalk.specs import Spec
from maskwalk.worlds.world import World

EIGHT = Default("random", (), {"block": 8})


@SAMPLERS.register("corrected")
@dataclass(frozen=True)
class Corrected(Sampler):
    """Remasks: another sampler, then masks poorly supported tokens and refills by bisection."""

    inner: Inner = EIGHT
    floor: float = 0.05
    passes: int = 1
    check: str = "support"
    world: World | None = None
    remasks: ClassVar[bool] = True
    added_later: ClassVar[tuple[str, ...]] = ("check",)
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
        one_of("check", self.check, ("support", "self", "world"))

    @property
    def needs_world(self) -> bool:
        """With a verifier: it has to be told what breaks."""
        return self.check == "world" or super().needs_world

    @property
    def asks_elsewhere(self) -> bool:
        """Unless the world says what breaks."""
        return self.check != "world" or super().asks_elsewhere

    def init(self, canvas: Canvas) -> State:
        """`left`: passes to come; `refill`: whether the first one has begun."""
        left = torch.full_like(canvas.tokens[:, 0], self.passes)
        inner = inner_state(sampler("inner", self.inner).init(canvas))
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
        if bool((~full & ~refill).any()):
            inner = sampler("inner", self.inner)
            after = inner_round(inner, after, denoise, rng, ~full & ~refill)
        if bool((~full & refill).any()):
            after = self._refill(after, denoise, rng, ~full & refill)
        return self._look_back(after, denoise, full) if bool(full.any()) else after

    def _refill(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams, rows: Tensor) -> Canvas:
        """A round of bisection on some of the rows; it plans anew in every round."""
        some, rule = canvas.select(rows), Bisection()
        some = replace(some, state=rule.init(some))
        after = rule.step(some, asking_for(denoise, rows), rng.on(rows))
        return replace(canvas, tokens=written(canvas.tokens, rows, after.tokens))

    def _look_back(self, canvas: Canvas, denoise: Denoiser, full: Tensor) -> Canvas:
        poor = self._poor(canvas, denoise, full[:, None] & ~canvas.given)
        left = torch.where(poor.any(1), canvas.state["left"] - 1, 0)
        state = canvas.state | {
            "left": torch.where(full, left, canvas.state["left"]),
            "refill": torch.where(full, 1, canvas.state["refill"]),
        }
        return replace(canvas, tokens=canvas.tokens.masked_fill(poor, canvas.mask_id), state=state)

    def _poor(self, canvas: Canvas, denoise: Denoiser, asked: Tensor) -> Tensor:
        """The tokens among those asked about that do not fit."""
        if self.check == "world":
            rows = asked.any(1)  # complete ones: the world reads no masks
            return asked & written(asked, rows, _broken(self.world, canvas.tokens[rows]))
        look = own_support if self.check == "self" else support
        own, best = look(canvas, denoise, asked)
        return own < best + log(self.floor)


def _broken(
    world: World | None, tokens: Int[Tensor, "batch length"]
) -> Bool[Tensor, "batch length"]:
    """Where the sequence breaks, and the position before."""
    valid = None if world is None else world.valid(tokens.cpu())
    if valid is None:
        raise MaskwalkError("corrected(check='world') needs a world that can tell what breaks.")
    breaks = ~valid.to(tokens.device)
    return breaks | F.pad(breaks[:, 1:], (0, 1))
