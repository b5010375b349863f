"""Moment sampler: MaskGIT's law with the positions chosen before anything is drawn.

MaskGIT with one pick a round keeps x at i with probability about ∝ p_i(x) · p_i(x)^{1/α}, α its
choice temperature. So, with β = 1 + 1/α, choose position i with probability ∝ Σ_x p_i(x)^β (the
β-th moment), n positions one after another without putting back, and then draw each from p_i^β,
normalised. α and n are MaskGIT's, annealed by its cosine schedule (`maskgit`); where all that is
left is revealed nothing is selected, and tokens are drawn from p_i itself, as MaskGIT's are.
Defaults T = 12, τ = 4.5.

`sharpen=False` draws from p_i instead: a policy then, whose tokens have the denoiser's marginals.

Source: the moment sampler [arXiv 2510.04525], equal to MaskGIT as positions grow in number while
the picks stay few. Its abstract was at hand, not its text, and no public code was found: the power
β is derived as above, what happens in the last round is ours, and so is the name `sharpen`. Its
caching and its hybrid with a fixed order are not offered.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import ROUNDS, MaskwalkError, real, shown, whole
from maskwalk.kernels.rows import by_rows
from maskwalk.samplers.parts.cosine import begun, count_and_heat
from maskwalk.samplers.parts.views import gumbel
from maskwalk.streams import Purpose


@SAMPLERS.register("moment")
@dataclass(frozen=True)
class Moment(Sampler):
    """Chooses by moments of the marginals, then draws sharpened: MaskGIT, position first."""

    steps: int = 12
    temperature: float = 4.5
    sharpen: bool = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        *({"steps": steps} for steps in (4, 8, 16)),
        {"steps": 6, "sharpen": False},
    )

    def __new__(cls, steps: int = 12, temperature: float = 4.5, sharpen: bool = True) -> "Moment":
        """A policy where tokens come from the marginals: it can be replayed then."""
        plain = cls is Moment and sharpen is False
        return object.__new__(PlainMoment if plain else cls)

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1, ROUNDS)
        real("temperature", self.temperature, 1e-3)
        if not isinstance(self.sharpen, bool):
            raise MaskwalkError(f"sharpen must be True or False, not {shown(self.sharpen)}.")

    def init(self, canvas: Canvas) -> State:
        """How many there are to reveal, and the rounds since."""
        return begun(canvas)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Choose, then draw from the sharpened marginals."""
        view = View(canvas, denoise, rng)
        chosen, power, state = self._choice(view, canvas.state, rng)
        rows = chosen.nonzero()[:, 0]
        log_p = view.log_marginals_at(chosen).to(torch.float64)
        sharp = torch.log_softmax(log_p * power[rows, None], -1)
        return canvas.reveal(chosen, rng.draw(sharp, chosen), state)

    def _choice(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], Float64[Tensor, " batch"], State]:
        """The positions, the power β of each row, and what to remember."""
        count, heat, state = count_and_heat(view, state, self.steps, self.temperature)
        everything = count >= view.masked.sum(1)
        power = torch.where(everything, 1.0, 1 + 1 / heat)
        rows = view.masked.nonzero()[:, 0]
        moment = by_rows(_log_moment, view.scored, power[rows])
        moment = torch.round(moment / view.score_grid) * view.score_grid
        scores = view.unpack(-moment) - gumbel(rng.uniform(Purpose.NOISE))
        return view.lowest(scores, count), power, state


class PlainMoment(Moment, UnmaskingPolicy):
    """The same choice, with tokens from the marginals: a policy."""

    law_kind, step = UnmaskingPolicy.law_kind, UnmaskingPolicy.step

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """As many as the schedule says, in proportion to their moments."""
        chosen, _, state = self._choice(view, state, rng)
        return chosen, state


def _log_moment(
    log_p: Float[Tensor, "rows vocab"], power: Float64[Tensor, " rows"]
) -> Float64[Tensor, " rows"]:
    """log Σ_x p(x)^β of each marginal."""
    return torch.logsumexp(log_p.to(torch.float64) * power[:, None], -1)
