"""Self-correction: every later call both fills what is masked and checks what is revealed.

Run the inner sampler to the end. Then `passes` calls. Each reads the network at *all* positions
that were not given: where masked, the token is drawn; where revealed, x_i is masked again if
p_i(x_i) < floor · max p_i. The last call only fills. A call that neither masks nor fills is the
last. Defaults: bisection, 3 passes, floor 0.05, so five calls and at most three.

A network trained on its own mistakes answers at revealed positions in the same call (`maskwalk
train --masking 'mistakes()'`). Any other denoiser is asked for each revealed token with that token
masked, one call each (decoding/counting.py).

Source: ProSeCo [arXiv 2602.11590] trains a masked model to correct its own drafts in the same
forward pass; a separate head for the quality of a token is PRISM [arXiv 2510.01384]. Both choose
what to remask by rank; here it is a bar relative to the likeliest token, as in `corrected`.
"""

from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.counting import asking_for, doubt
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, real, whole
from maskwalk.samplers.parts.inner import Default, Inner, sampler
from maskwalk.samplers.parts.phases import inner_round, inner_state
from maskwalk.specs import Spec

BISECTION = Default("bisection", (), {})
EIGHT = Spec("random", (), {"block": 8})


@SAMPLERS.register("self_correct")
@dataclass(frozen=True)
class SelfCorrect(Sampler):
    """Remasks: another sampler, then calls that fill and check in one."""

    inner: Inner = BISECTION
    passes: int = 3
    floor: float = 0.05
    remasks: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"floor": 0.5},
        {"passes": 6, "floor": 0.5},
        {"inner": EIGHT},
        {"inner": Spec("random", (), {"block": 24}), "passes": 6},
    )

    def __post_init__(self) -> None:
        inner = sampler("inner", self.inner)
        if inner.remasks:
            raise MaskwalkError(
                f"inner must be a sampler that keeps what it reveals; {inner!r} takes tokens back."
            )
        object.__setattr__(self, "inner", inner)
        whole("passes", self.passes, 1, 1000)
        real("floor", self.floor, 1e-300, 1.0)

    @property
    def asks_elsewhere(self) -> bool:
        """Revealed tokens given all others."""
        return True

    def init(self, canvas: Canvas) -> State:
        """`left`: calls to come after the inner sampler's; `filled`: whether it is done."""
        left = torch.full_like(canvas.tokens[:, 0], self.passes)
        inner = inner_state(sampler("inner", self.inner).init(canvas))
        return {"left": left, "filled": torch.zeros_like(left)} | inner

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Complete, and no call to come that may look: the last one only fills."""
        done = canvas.given.all(1) | (canvas.state["left"] <= 1)
        return ~canvas.masked.any(1) & done

    def max_rounds(self, length: int) -> int:
        """The inner sampler's, and the passes."""
        return sampler("inner", self.inner).max_rounds(length) + self.passes

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Rows that the inner sampler has not filled yet go on with it; the others correct."""
        filled = (canvas.state["filled"] > 0) | ~canvas.masked.any(1)
        after = canvas
        if not bool(filled.all()):
            after = inner_round(sampler("inner", self.inner), after, denoise, rng, ~filled)
        return self._pass(after, denoise, rng, filled) if bool(filled.any()) else after

    def _pass(
        self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams, rows: Bool[Tensor, " batch"]
    ) -> Canvas:
        """One call: draws where masked, masks where the token does not fit."""
        some, streams = canvas.select(rows), rng.on(rows)
        masked, left = some.masked, some.state["left"] - 1
        looked = self._open(some) & (left > 0)[:, None]
        log_probs, poor = self._look(some, asking_for(denoise, rows), looked)
        tokens = some.tokens.masked_fill(poor, some.mask_id)
        if bool(masked.any()):
            tokens = tokens.masked_scatter(masked, streams.draw(log_probs, masked))
        state = dict(canvas.state)
        going = (poor | masked).any(1)  # what was filled now has not been looked at
        state["left"] = state["left"].masked_scatter(rows, torch.where(going, left, 0))
        state["filled"] = torch.where(rows, 1, state["filled"])
        everywhere = canvas.tokens.clone()
        everywhere[rows] = tokens
        return replace(canvas, tokens=everywhere, state=state)

    def _look(
        self, canvas: Canvas, denoise: Denoiser, looked: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "n vocab"], Bool[Tensor, "batch length"]]:
        """(log-marginals where masked, the tokens among `looked` that do not fit), one call."""
        masked = canvas.masked
        asked = masked | looked
        log_probs = doubt(denoise, canvas.tokens, asked)
        shown = torch.where(masked, 0, canvas.tokens)[asked]
        fits = log_probs.gather(1, shown[:, None])[:, 0] >= log_probs.amax(1) + log(self.floor)
        poor = torch.zeros_like(masked).masked_scatter(asked, ~fits) & ~masked
        return log_probs[masked[asked]], poor

    @staticmethod
    def _open(canvas: Canvas) -> Bool[Tensor, "batch length"]:
        """Revealed tokens that may be taken back."""
        revealed = ~canvas.given & ~canvas.masked
        return revealed if canvas.open is None else revealed & canvas.open
