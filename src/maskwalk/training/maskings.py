"""Maskings: in which contexts a model learns to answer.

Training shows the network a sequence with some positions masked and asks for their tokens. Which
positions those are decides what is minimised, and so where the network spends its capacity:

    uniform                the paper's: a time t uniform on (ε, 1], every position masked with
                           probability (1 − ε)t, weight 1/t. An unbiased estimate of the bound on
                           −log p(x) over random orders.
    coarse(share=0.5)      that share of each batch is masked as a coarse-to-fine sampler leaves it:
                           revealed positions evenly spaced at a random real stride (log-uniform,
                           `low` to `high`, by default 1.5 to the length) and offset, both ends
                           revealed half of the time; weight 1/(share of positions masked). The rest
                           is uniform. What is minimised is no bound on −log p(x): it is the mean
                           cross-entropy over these contexts, half of it the uniform bound.
    along(sampler='…')     that share of each batch is masked as the sampler really leaves it under
                           the model of the moment: training sequences are forced through the policy
                           (analysis/replay.py) every `every` steps, and each enters in one of its
                           rounds, drawn at random. `counted='next'` counts the positions that the
                           policy reveals in that round, times the number of rounds: this is the
                           policy's own −log q(x), with the policy held fixed. `counted='all'`
                           counts every masked position, with weight 1/(share masked).

In each of them the positions masked depend on nothing but revealed tokens and chance, so the best
answer is the true conditional whatever the masking; only the weight of the contexts differs.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.errors import one_of, real, whole
from maskwalk.specs import Registry

EXTRA = 5  # uniforms a sample has besides one for each position and one for the time
WHICH, STRIDE, OFFSET, ENDS, ENTRY = range(EXTRA)


class Masking:
    """A way to mask `share` of each batch; the rest is masked uniformly."""

    share: float = 0.0

    def masked(self, extra: Float[Tensor, "... extra"], length: int) -> Bool[Tensor, "... length"]:
        """The masked positions of that share, from the uniforms a sample has for this."""
        raise NotImplementedError(f"{type(self).__name__} masks nothing by itself.")


MASKINGS: Registry[Masking] = Registry("masking", home="maskwalk.training.maskings", makes=Masking)


@MASKINGS.register("uniform")
@dataclass(frozen=True)
class Uniform(Masking):
    """The paper's masking: every position alike, with a random probability."""


@MASKINGS.register("coarse")
@dataclass(frozen=True)
class Coarse(Masking):
    """Revealed positions evenly spaced, as a coarse-to-fine sampler leaves them."""

    share: float = 0.5
    low: float = 1.5  # the smallest stride
    high: float | None = None  # the largest; None: the length

    def __post_init__(self) -> None:
        real("share", self.share, 0.0, 1.0)
        real("low", self.low, 1.0)
        if self.high is not None:
            real("high", self.high, self.low)

    def masked(self, extra: Float[Tensor, "... extra"], length: int) -> Bool[Tensor, "... length"]:
        """Where no multiple of the stride, shifted, is crossed."""
        high = max(self.low, length if self.high is None else self.high)
        low = math.log(self.low)
        stride = torch.exp(low + (math.log(high) - low) * extra[..., STRIDE, None])
        place = torch.arange(length, device=extra.device)
        level = ((place + 1) / stride + extra[..., OFFSET, None]).floor()
        before = (place / stride + extra[..., OFFSET, None]).floor()
        end = (place == 0) | (place == length - 1)
        revealed = (level > before) | (end & (extra[..., ENDS, None] < 0.5))
        return ~revealed


@MASKINGS.register("along", parts={"sampler": SAMPLERS})
@dataclass(frozen=True)
class Along(Masking):
    """The contexts a policy visits under the current model, learned from forced sequences."""

    sampler: str = "guided_bisection()"
    share: float = 0.5
    counted: str = "next"
    every: int = 1000  # steps from one look at the policy to the next
    sequences: int = 4096  # forced through it each time

    def __post_init__(self) -> None:
        from maskwalk.analysis.replay import check_replayable

        real("share", self.share, 0.0, 1.0)
        one_of("counted", self.counted, ("next", "all"))
        whole("every", self.every, 1)
        whole("sequences", self.sequences, 1, 1 << 20)
        check_replayable(SAMPLERS.build(self.sampler))
