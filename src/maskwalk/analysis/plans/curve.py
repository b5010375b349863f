"""The information curve of a random order, and the best block sizes for a number of calls.

    h(m) = mean entropy of a position given m random others           (nats; never rises with m)

Revealing positions a+1 … b of a uniformly random order in one round loses, in expectation,

    Σ_{j=a}^{b−1} [h(a) − h(j)]   nats of dependence,

because the block's marginals have h(a) each while its joint entropy is Σ_j h(j). A schedule with
blocks s_1, s_2, … from a_1 = 0, a_{k+1} = a_k + s_k therefore loses Σ_k s_k h(a_k) − Σ_m h(m): the
error of a left Riemann sum, least by dynamic programming over where the rounds end.

For a learned denoiser h is the cross-entropy −log p_i(x_i | x_U) of true sequences: the same sum
then holds for the whole loss, denoiser error included.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.analysis.plans.entropies import Entropies
from maskwalk.decoding.scores import entropy
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.arguments import as_denoiser
from maskwalk.errors import MaskwalkError, whole
from maskwalk.stats import standard_errors
from maskwalk.streams import Purpose, Streams


@dataclass(frozen=True, eq=False)
class Curve:
    """h(0) … h(n−1) for n positions to fill, with standard errors (0 if exact)."""

    nats: Float64[np.ndarray, " n"]
    se: Float64[np.ndarray, " n"]
    kind: str  # "exact", "oracle" (entropies, sampled sequences) or "denoiser" (cross-entropies)


def exact_curve(joint: Entropies, length: int, given: Iterable[int] = ()) -> Curve:
    """h(m) by averaging H(X_U) over all sets U: h(m) = mean H(|U|=m+1) − mean H(|U|=m)."""
    known = frozenset(given)
    free = [i for i in range(length) if i not in known]
    level = [
        sum(joint(known | set(some)) for some in combinations(free, m)) / comb(len(free), m)
        for m in range(len(free) + 1)
    ]
    return Curve(np.diff(level), np.zeros(len(free)), "exact")


def information_curve(
    denoiser: Denoiser | str,
    sequences: Int[Tensor, "batch length"],
    given: Bool[Tensor, "batch length"] | None = None,
    seed: int = 0,
    batch: int = 128,
) -> Curve:
    """h(m) from sequences of the law, one random order each: entropies of an oracle's marginals, or
    the cross-entropies of any other denoiser."""
    denoiser = as_denoiser(denoiser)
    given = torch.zeros_like(sequences, dtype=torch.bool) if given is None else given
    sizes = (~given).sum(1).unique()
    if len(sizes) != 1 or int(sizes) == 0:
        raise MaskwalkError(
            "An information curve needs sequences that all have as many positions to fill, "
            "at least one."
        )
    free, exact = int(sizes), getattr(denoiser, "exact", False)
    ids = torch.arange(len(sequences), device=sequences.device)
    keys = Streams(seed, ids).uniform(Purpose.METRIC, 0, sequences.shape[1])
    rank = keys.masked_fill(given, -1.0).argsort(1).argsort(1) - (sequences.shape[1] - free)
    curve = torch.empty((len(sequences), free), dtype=torch.float64)
    for part in ids.split(batch):
        for m in range(free):
            canvas = torch.where(rank[part] < m, sequences[part], denoiser.mask_id)
            log_probs = denoiser(canvas)
            if exact:
                nats = entropy(log_probs)
            else:
                hidden = sequences[part][rank[part] >= m]
                nats = -log_probs.gather(1, hidden[:, None])[:, 0].to(torch.float64)
            curve[part.cpu(), m] = nats.view(len(part), free - m).mean(1).cpu()
    kind = "oracle" if exact else "denoiser"
    spread = standard_errors(curve, 0)
    return Curve(curve.mean(0).numpy(), spread.numpy(), kind)


def optimal_sizes(curve: Curve, calls: int) -> tuple[int, ...]:
    """The block sizes of the `calls` rounds that lose least under a random order.

    best[c][b] = min over a of best[c−1][a] + (b − a) h(a).
    """
    h, n = curve.nats, len(curve.nats)
    calls = whole("calls", calls, 1, n)
    place = np.arange(n + 1)
    cost = (place[None, :] - place[:, None]) * np.append(h, 0.0)[:, None]
    cost = np.where(place[None, :] > place[:, None], cost, np.inf)  # a round reveals something
    best, parents = np.where(place == 0, 0.0, np.inf), []
    for _ in range(calls):
        ways = best[:, None] + cost
        parents.append(ways.argmin(0))
        best = ways.min(0)
    ends = [n]
    for parent in reversed(parents):
        ends.append(int(parent[ends[-1]]))
    return tuple(int(s) for s in np.diff(ends[::-1]))


def schedule_cost(curve: Curve, sizes: Sequence[int]) -> float:
    """The nats these block sizes lose against one position at a time."""
    if sum(sizes) != len(curve.nats) or min(sizes, default=0) < 1:
        raise MaskwalkError(
            f"Block sizes must be positive and add up to {len(curve.nats)}, not {tuple(sizes)}."
        )
    starts = np.cumsum([0, *sizes[:-1]])
    return float((np.array(sizes) * curve.nats[starts]).sum() - curve.nats.sum())
