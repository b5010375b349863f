"""Credit: tokens that were likeliest in earlier rounds are made likelier in this one.

Every masked position keeps a credit C_i(v) for every token. A round first fades all credits and
adds to the likeliest token's, v = argmax p_i; then another sampler works with the marginals that
credits have moved:

    C_i ← β C_i,   C_i(v) ← C_i(v) + p_i(v)^γ
    p̃_i ∝ p_i · (1 + C_i)^α

Defaults: threshold(tau=0.9) on p̃, α = 0.7, β = 0.8, γ = 0.2. α = 0 is the inner sampler alone.

Its tokens are drawn from p̃, not from the denoiser's p, sharper round by round: the law is shaped,
also one token at a time and with a perfect denoiser.

Source: CreditDecoding [arXiv 2510.06133]. Defaults and formula are those of the public code
(inclusionAI/dInfer fce4e32, CreditThresholdParallelDecoder), blocks(size=64, inner=credit(
inner=threshold_drawn(tau=0.9))) there: credits are a block's own, here too. Credits are kept per
sequence (V numbers per position), so the rule suits small vocabularies; a token that is impossible
stays so.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import real
from maskwalk.samplers.parts.answers import Answers, numbered
from maskwalk.samplers.parts.inner import Default, Inner, on_its_canvas, sampler
from maskwalk.specs import Spec

SURE = Default("threshold", (), {"tau": 0.9})
INNER = "inner "


@SAMPLERS.register("credit")
@dataclass(frozen=True)
class Credit(Sampler):
    """Another sampler on marginals sharpened towards tokens that stayed likeliest."""

    inner: Inner = SURE
    alpha: float = 0.7
    beta: float = 0.8
    gamma: float = 0.2
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"inner": Spec("threshold", (), {"tau": tau})} for tau in (0.6, 0.8, 0.9, 0.99)
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", on_its_canvas(sampler("inner", self.inner)))
        real("alpha", self.alpha, 0.0, 1e6)
        real("beta", self.beta, 0.0, 1.0)
        real("gamma", self.gamma, 0.0)

    @property
    def remasks(self) -> bool:  # type: ignore[override]
        """Whether the inner sampler does."""
        return sampler("inner", self.inner).remasks

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the inner sampler says that lasts."""
        return tuple(INNER + name for name in sampler("inner", self.inner).lasting)

    def first_picks(self, length: int) -> range | None:
        """The inner sampler's: where all marginals are alike, so are the credits."""
        return sampler("inner", self.inner).first_picks(length)

    def init(self, canvas: Canvas) -> State:
        """No credits yet (the vocabulary's size is not known yet either)."""
        shape = (*canvas.tokens.shape, 1)
        none = torch.zeros(shape, dtype=torch.float64, device=canvas.tokens.device)
        return {"credit": none} | _named(sampler("inner", self.inner).init(canvas))

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Where the inner sampler has."""
        return sampler("inner", self.inner).finished(_inner(canvas))

    def max_rounds(self, length: int) -> int:
        """The inner sampler's."""
        return sampler("inner", self.inner).max_rounds(length)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One call; credits; the inner sampler's step on what they make of the answer."""
        masked = asked = canvas.masked
        if sampler("inner", self.inner).reads_whole:  # no credits outside of a block
            asked = (canvas.tokens == canvas.mask_id) & masked.any(1, keepdim=True)
        log_p, inside = denoise(canvas.tokens, asked), masked[asked]
        old = canvas.state["credit"] * self.beta
        credit = old.expand(*old.shape[:2], log_p.shape[1]).clone()
        log_p = log_p.to(torch.float64)
        best = log_p.amax(-1)
        token = torch.round(log_p / denoise.score_grid).argmax(-1)  # the first of equals
        mine, gain = credit[asked], (self.gamma * best).exp() * inside
        mine[torch.arange(len(mine), device=mine.device), token] += gain
        credit[asked] = mine
        moved = torch.log_softmax(log_p + self.alpha * torch.log1p(mine), -1)
        answers = Answers(denoise, moved, numbered(asked), canvas.tokens)
        after = sampler("inner", self.inner).step(_inner(canvas), answers, rng)
        return replace(after, state={"credit": credit} | _named(after.state))


def _inner(canvas: Canvas) -> Canvas:
    """The canvas with what the inner sampler remembers of it."""
    size = len(INNER)
    state = {name[size:]: x for name, x in canvas.state.items() if name.startswith(INNER)}
    return replace(canvas, state=state)


def _named(state: State) -> State:
    return {INNER + name: value for name, value in state.items()}
