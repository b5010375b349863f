"""The likelihood of held-out text under a policy, along one or more of its paths.

A stochastic policy, with random numbers ω, gives a text q(x) = E_ω q_ω(x), and `replay` follows one
path, q_ω. Over K of them −log (1/K) Σ_k q_ωk(x) is, on average, an upper bound on −log q(x) that
falls as K grows [Burda, Grosse & Salakhutdinov, ICLR 2016]. A policy without randomness has one
path, and it is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.analysis.replay import replay
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import whole
from maskwalk.streams import Streams

TABLE, ACCELERATOR_TABLE = 1 << 30, 1 << 33  # bytes of the answers to one batch


@dataclass(frozen=True, eq=False)
class Paths:
    """−log q_ω(x) of every passage along every path."""

    nats: Float64[Tensor, "paths passages"]
    calls: Float64[Tensor, " passages"]  # along the first path
    random: bool  # whether it is stochastic: if not, one path is all there is

    def over(self, count: int | None = None) -> Float64[Tensor, " passages"]:
        """The nats of each passage over `count` paths (over all); the mean of all such groups."""
        count = len(self.nats) if count is None else count
        groups = self.nats[: len(self.nats) // count * count].view(-1, count, self.nats.shape[1])
        return (log(count) - torch.logsumexp(-groups, 1)).mean(0)

    def lost(self, count: int) -> float:
        """The share of passages that none of `count` paths can produce; the mean of all groups."""
        groups = self.nats[: len(self.nats) // count * count].view(-1, count, self.nats.shape[1])
        return float(groups.isinf().all(1).double().mean())

    def counts(self) -> list[int]:
        """1, 2, 4, … paths, and all of them."""
        every = len(self.nats)
        return sorted({*(2**i for i in range(every.bit_length())), every})


def minus(one: Paths, other: Paths, count: int) -> Float64[Tensor, " passages"]:
    """Passage by passage, the nats of one policy less another's, over as many paths of each.

    A policy without randomness has one path, which is exact: it stands for any number of them.
    """
    return one.over(min(count, len(one.nats))) - other.over(min(count, len(other.nats)))


def batch_for(model: LanguageModel, length: int, most: int) -> int:
    """How many passages go together, at most `most`: their answers take no more than `TABLE`."""
    room = TABLE if model.device == "cpu" else ACCELERATOR_TABLE
    return max(1, min(most, room // (4 * length * model.denoiser.vocab_size)))


def along_paths(
    sampler: Sampler,
    model: LanguageModel,
    passages: Int[Tensor, "passages length"],
    paths: int,
    *,
    seed: int = 0,
    batch: int = 32,
    draw: Draw | None = None,
    ties: str = "uniform",
    known: Bool[Tensor, "passages length"] | None = None,
    told: Callable[[int], object] = lambda _: None,
) -> Paths:
    """Forces the passages through `sampler`, `batch` at a time; `told` hears of every passage.

    Path k of passage i has the stream k·passages + i, so more paths begin with the same ones. What
    is `known` is on the canvas from the start and costs nothing.
    """
    whole("paths", paths, 1)
    count, random = len(passages), False
    nats: list[Tensor] = []
    calls: list[Tensor] = []
    while len(nats) < paths and (not nats or random):
        # Once the policy is known to be stochastic, the paths that are left go together.
        more = paths - len(nats) if nats else 1
        ids = len(nats) * count + torch.arange(more * count)
        rows = []
        for some in ids.split(batch):
            texts = passages[some % count].to(model.device)
            given = None if known is None else known[some % count].to(model.device)
            streams = Streams(seed, some.to(model.device))
            result = replay(
                sampler, model.denoiser, texts, streams=streams, draw=draw, ties=ties, given=given
            )
            rows.append(-result.log_prob.sum(1).cpu())
            calls += [result.calls.cpu().double()] if not nats else []
            random |= result.random
            told(len(some))
        nats += torch.cat(rows).view(more, count).unbind()
    return Paths(torch.stack(nats), torch.cat(calls), random)
