"""A world small enough to list, a canvas to start from, and the exact law of a policy there."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.analysis.law import Law, sampler_law, total_variation
from maskwalk.decoding.decode import decode
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.specs import parse
from maskwalk.streams import Streams
from maskwalk.worlds.exact.listing import support_of
from maskwalk.worlds.separators import Separator
from maskwalk.worlds.world import WORLDS, World


@dataclass(frozen=True, eq=False)
class Instance:
    """A world, how to name it, and canvases with some tokens given (equally likely starts)."""

    name: str
    label: str  # the same in a word or two
    world: World
    canvas: Int[Tensor, "starts length"]

    @cached_property
    def oracle(self) -> Denoiser:
        """The world's exact conditionals."""
        oracle = self.world.oracle()
        if oracle is None:
            raise MaskwalkError(f"{self.name} has no oracle, so no law can be computed exactly.")
        return oracle

    @cached_property
    def truth(self) -> Law:
        """The sequences that agree with a start, and how likely they are."""
        tokens, probs = listed(self.world)
        parts = []
        for start in self.canvas:
            fits = ((tokens == start) | (start == self.world.vocab_size)).all(1)
            parts.append((tokens[fits], probs[fits] / probs[fits].sum() / len(self.canvas)))
        return torch.cat([t for t, _ in parts]), torch.cat([p for _, p in parts])

    @property
    def masked(self) -> list[int]:
        """The positions to fill in."""
        return (self.canvas[0] == self.world.vocab_size).nonzero()[:, 0].tolist()

    @property
    def all_possible(self) -> bool:
        """Whether every sequence is possible, so that coherence says nothing."""
        possible: int = self.world.vocab_size ** len(self.masked)
        return len(self.truth[1]) == len(self.canvas) * possible

    @property
    def separators(self) -> Separator | None:
        """The world's own, if it names some."""
        separators: Separator | None = getattr(self.world, "separators", lambda: None)()
        return separators

    def law(self, policy: UnmaskingPolicy) -> Law:
        """What the policy makes of the canvas, with its probabilities."""
        return sampler_law(policy, self.oracle, self.canvas)

    def distance(self, policy: UnmaskingPolicy) -> float:
        """Total variation of the policy's law to the truth, added up over the starts."""
        return len(self.canvas) * total_variation(self.law(policy), self.truth)

    def calls(self, policy: UnmaskingPolicy) -> int:
        """Denoiser calls, for a policy that takes as many whatever it draws."""
        decoded = decode(policy, self.oracle, self.canvas[:1], streams=Streams(0, 1))
        return int(decoded.calls.max())


def instance(spec: str, given: int = 0) -> Instance:
    """The world of a spec, its last `given` tokens as in the first of its sequences."""
    world, read = WORLDS.build(spec), parse(spec)
    label = ", ".join([read.name, *(v for v in read.kwargs.values() if isinstance(v, str))])
    canvas = torch.full((1, world.length), world.vocab_size)
    if not given:
        return Instance(spec, label, world, canvas)
    canvas[0, -given:] = listed(world)[0][0, -given:]
    return Instance(f"{spec}, last {given} given", label, world, canvas)


def between_ends(free: Instance) -> Instance:
    """The same world with both ends given, for every pair of ends that occurs."""
    ends = listed(free.world)[0][:, [0, -1]].unique(dim=0)
    canvas = torch.full((len(ends), free.world.length), free.world.vocab_size)
    canvas[:, [0, -1]] = ends
    return Instance(f"{free.name}, ends given", free.label, free.world, canvas)


def listed(world: World) -> Law:
    """All sequences of a world with their probabilities."""
    known = support_of(world)
    if known is None:
        raise MaskwalkError("This world has too many sequences to list; take a smaller one.")
    return known


def divergence(truth: Law, made: tuple[Int[Tensor, "m length"], Float64[Tensor, " m"]]) -> float:
    """KL(truth ‖ made) in nats: infinite if something true is never made."""
    count, probs = len(truth[1]), truth[1]
    _, place = torch.cat([truth[0], made[0]]).unique(dim=0, return_inverse=True)
    mass = torch.zeros(int(place.max()) + 1, dtype=torch.float64)
    mass.index_add_(0, place[count:], made[1])
    return max(0.0, float((probs * (probs.log() - mass[place[:count]].log())).sum()))
