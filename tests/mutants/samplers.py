"""The bugs users hit in public samplers, one class each; the contract must catch every one."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.samplers.entropy import Entropy
from maskwalk.samplers.left_to_right import LeftToRight
from maskwalk.streams import Purpose


class EntropyBackwards(Entropy):
    """Entropy ranked the wrong way round: the least certain position first."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        scores = view.score("entropy")
        return view.lowest(torch.where(view.masked, -scores, scores), self.block), state


class CumulativeOverBatch(UnmaskingPolicy):
    """A cumulative maximum over the batch axis: each row sees the rows before it."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        scores = torch.where(view.masked, view.score("entropy"), 0.0)
        running = scores.cummax(0).values
        return view.lowest(torch.where(view.masked, running, torch.inf)), state


class CountsAveragedOverBatch(UnmaskingPolicy):
    """The number to reveal is a fraction of the *average* number masked in the batch."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        count = max(1, round(float(view.masked.sum(1).to(torch.float64).mean()) / 2))
        return view.lowest(view.score("entropy"), count), state


class ScoresChangeWithBatch(UnmaskingPolicy):
    """Scores standardised with the mean of the whole batch, then thresholded."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        scores = view.score("entropy")
        bar = scores[view.masked].mean()
        confident = view.masked & (scores < bar)
        best = view.lowest(scores)
        return torch.where(confident.any(1, keepdim=True), confident, best), state


class CrashesAboveBatchOne(UnmaskingPolicy):
    """Written for one sequence: squeezes the batch axis away."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        scores = view.score("entropy")
        best = int(scores.reshape(-1)[: view.masked.shape[1]].argmin())
        if len(view.masked) > 1:
            raise IndexError("too many indices for a tensor of one sequence")
        return torch.nn.functional.one_hot(torch.tensor([best]), view.masked.shape[1]).bool(), state


class NoiseInConfidence(Entropy):
    """Gumbel noise meant for the tokens leaks into the scores that rank positions."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        noise = -torch.log(-torch.log(rng.uniform(Purpose.ACCEPT).clamp(1e-9, 1 - 1e-9)))
        return view.lowest(view.score("entropy") - noise, self.block), state


class GlobalGenerator(UnmaskingPolicy):
    """Takes its randomness from the process-wide generator."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        return view.lowest(torch.rand(view.masked.shape, dtype=torch.float64)), state


class NeverRemasks(LeftToRight):
    """A remasking sampler whose remasking probability is always zero."""

    remasks: ClassVar[bool] = True


class IndexTies(Entropy):
    """Takes the lowest index among equals although ties should be uniform."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        first = view.score("entropy").argmin(1, keepdim=True)
        return torch.zeros_like(view.masked).scatter(1, first, True), state


class OverwritesGiven(Sampler):
    """Draws everywhere, given positions included."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        everywhere = torch.full_like(canvas.tokens, canvas.mask_id)
        at = torch.ones_like(canvas.masked)
        return replace(canvas, tokens=rng.draw(denoise(everywhere, at), at).view_as(everywhere))


class ChoosesNothing(UnmaskingPolicy):
    """A threshold that nothing passes, and no fallback."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        return view.masked & (view.score("confidence") < -1.5), state


@dataclass(frozen=True)
class DrawsFirst(UnmaskingPolicy):
    """Draws everywhere and keeps the likeliest draw: looks at the tokens before it chooses."""

    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        log_probs = view.log_marginals
        drawn = rng.draw(log_probs, view.masked)
        kept = view.unpack(-log_probs.gather(1, drawn[:, None])[:, 0])
        return torch.zeros_like(view.masked).scatter(1, kept.argmin(1, keepdim=True), True), state


@dataclass(frozen=True)
class PlansInRoundZero(UnmaskingPolicy):
    """Plans the whole sequence in the first round: in a second block there is no plan."""

    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def init(self, canvas: Canvas) -> State:
        return {"plan": torch.zeros_like(canvas.tokens, dtype=torch.float64)}

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        plan = view.score("entropy") + rng.uniform() if view.round == 0 else state["plan"]
        plan = plan.masked_fill(~view.masked & (state["plan"] != 0), torch.inf)
        first = plan.argmin(1, keepdim=True)
        return torch.zeros_like(view.masked).scatter(1, first, True), {"plan": plan}


@dataclass(frozen=True)
class MeasuresTheCanvas(UnmaskingPolicy):
    """Stops at a share of the canvas: fine on an empty one, never done in a block."""

    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        revealed = (view.tokens != view.mask_id).sum(1)
        count = view.masked.shape[1] - revealed - view.masked.sum(1)
        return view.lowest(view.score("entropy"), 1 - count.clamp(max=1)), state
