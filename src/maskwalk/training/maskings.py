"""Maskings: in which contexts a model learns to answer.

Training shows the network a sequence with some positions masked and asks for their tokens. Which
positions those are decides what is minimised, and so where the network spends its capacity:

    uniform      the paper's: a time t uniform on (ε, 1], every position masked with probability
                 (1 − ε)t, weight 1/t. An unbiased estimate of the bound on −log p(x) over random
                 orders.
    coarse       `share` of each batch is masked as a coarse-to-fine sampler leaves it: revealed
                 positions evenly spaced at a random real stride (log-uniform, `low` to `high`, by
                 default 1.5 to the length) and offset, both ends revealed half of the time; weight
                 1/(share of positions masked). The rest is uniform. What is minimised is no bound
                 on −log p(x): it is the mean cross-entropy over these contexts.

Others look at the model of the moment every `every` steps and fill a table of contexts (looks.py)
for `share` of each batch; with rest='coarse' half of the other samples are coarse:

    along        as a policy really leaves them: training sequences are forced through it, and each
                 enters before one of its rounds, drawn at random. counted='next' counts the
                 positions that the policy reveals in that round, times the number of rounds: the
                 policy's own −log q(x), with the policy held fixed. counted='all' counts every
                 masked position, weight 1/(share masked).
    distil       coarse contexts, completed by the model itself with a slow sampler: the answer to
                 learn is the one that one-at-a-time decoding gives. Minimised: the distance of the
                 marginals of long gaps to the model's own sequential law.
    mistakes     complete sequences in which a random share of the tokens (up to `rate`) were drawn
                 by the model, all at once, given the others; every position counts, and the answer
                 is the true token. What the network says *at* a revealed position then tells
                 whether the token there fits (samplers/self_correct.py).

In the first three the positions masked depend on nothing but revealed tokens and chance, so the
best answer is the true conditional whatever the masking; only the weight of the contexts differs.

`planner` > 0, in any of them, counts a masked position 1 + planner · n · w_i times, n the number
counted and w_i their softmax of log p(x_i): more where the model is surer, so where a confident
policy would reveal next (PAPL [arXiv 2509.23405], with the true token's probability as planner).
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.specs import Registry

EXTRA = 5  # uniforms a sample has besides one for each position and one for the time
WHICH, STRIDE, OFFSET, ENDS, ENTRY = range(EXTRA)


@dataclass(frozen=True, kw_only=True)
class Masking:
    """A way to mask `share` of each batch; the rest is masked uniformly."""

    share = 0.0  # not a parameter of every masking
    whole = True  # whether what counts are all masked positions, and only they
    planner: float = 0.0

    def __post_init__(self) -> None:
        real("share", self.share, 0.0, 1.0)
        real("planner", self.planner, 0.0)

    def masked(self, extra: Float[Tensor, "... extra"], length: int) -> Bool[Tensor, "... length"]:
        """The masked positions of that share, from the uniforms a sample has for this."""
        raise NotImplementedError(f"{type(self).__name__} masks nothing by itself.")


def check_output(masking: Masking, spec: str, config: DDiTConfig) -> None:
    """Refuses a masking under which the network's output has nothing to learn from."""
    output = config.head
    if output.joint and not masking.whole:
        raise MaskwalkError(
            f"output={config.output} learns all masked positions of a sequence together, and "
            f"masking={spec} counts others: use uniform, coarse, distil or along(counted='all')."
        )
    if masking.planner and not output.likelihood:
        raise MaskwalkError(
            f"A planner weighs positions by their own likelihood, which output={config.output} "
            f"does not minimise: leave planner out of masking={spec}, or use output=softmax."
        )


MASKINGS: Registry[Masking] = Registry("masking", home="maskwalk.training.maskings", makes=Masking)


@MASKINGS.register("uniform")
@dataclass(frozen=True, kw_only=True)
class Uniform(Masking):
    """The paper's masking: every position alike, with a random probability."""


@MASKINGS.register("coarse")
@dataclass(frozen=True, kw_only=True)
class Coarse(Masking):
    """Revealed positions evenly spaced, as a coarse-to-fine sampler leaves them."""

    share: float = 0.5
    low: float = 1.5  # the smallest stride
    high: float | None = None  # the largest; None: the length

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclass(frozen=True, kw_only=True)
class Looking(Masking):
    """A masking that looks at the model of the moment."""

    share: float = 0.5
    every: int = 1000  # steps from one look to the next
    sequences: int = 4096  # in the table
    rest: str = "uniform"  # the other samples: uniform, or half of them coarse

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("rest", self.rest, ("uniform", "coarse"))
        whole("every", self.every, 1)
        whole("sequences", self.sequences, 1, 1 << 20)


@MASKINGS.register("along", parts={"sampler": SAMPLERS})
@dataclass(frozen=True, kw_only=True)
class Along(Looking):
    """The contexts a policy visits under the current model, learned from forced sequences."""

    sampler: str = "guided_bisection()"
    counted: str = "next"

    def __post_init__(self) -> None:
        from maskwalk.analysis.replay import check_replayable

        super().__post_init__()
        one_of("counted", self.counted, ("next", "all"))
        object.__setattr__(self, "whole", self.counted == "all")
        check_replayable(SAMPLERS.build(self.sampler))


@MASKINGS.register("distil", parts={"sampler": SAMPLERS})
@dataclass(frozen=True, kw_only=True)
class Distil(Looking):
    """Coarse contexts completed by the model itself, one token at a time."""

    sampler: str = "entropy(block=1)"

    def __post_init__(self) -> None:
        super().__post_init__()
        SAMPLERS.build(self.sampler)


@MASKINGS.register("mistakes")
@dataclass(frozen=True, kw_only=True)
class Mistakes(Looking):
    """Complete sequences with tokens of the model's own among them, to find and mend."""

    share: float = 0.25
    whole = False
    rate: float = 0.5  # the largest share of a sequence that is the model's own

    def __post_init__(self) -> None:
        super().__post_init__()
        real("rate", self.rate, 0.0, 1.0)
