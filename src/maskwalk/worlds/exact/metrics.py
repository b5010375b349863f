"""What is measured in worlds whose law is known.

replay_kl, replay_dependence, replay_denoiser
                           the loss per token of exact sequences forced through the sampler, and its
                           two parts; asked for by name (`metrics = ["replay_kl", …]` in a file)
replay_lost, replay_rest   of truncated draws, whose KL is infinite: the share of exact sequences
                           that can never be drawn, and the loss per token on the others
distinct, solution_chi2    of uniform laws: how many different solutions, and how evenly
pair_tv                    the joint law of pairs of positions that a world names
"""

from functools import lru_cache
from math import exp, isinf, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int, Int64
from scipy.special import chdtrc
from torch import Tensor

from maskwalk.stats import (
    Estimate,
    goodness_of_fit,
    half_split_se,
    half_splits,
    split_groups,
    standard_error,
)
from maskwalk.worlds.exact.listing import support_of
from maskwalk.worlds.metrics import METRICS, REPLAY, Sample
from maskwalk.worlds.world import World

UNIFORM = ("latin", "sudoku", "dyck", "regular", "hierarchy", "addition")
PAIRED = ("potts", "hmm", "pcfg", "dyck", "regular")
LISTED = 20_000  # solutions whose counts are compared
FLOOR_RUNS, FLOOR_IDS = 8, 2_000_000_000


# ---------------------------------------------------------------- by replay


def _per_token(sample: Sample, name: str) -> Estimate | None:
    """A loss of the replay in nats per masked token."""
    row = sample.readings.get(REPLAY)
    if row is None or row.get(name) is None or isinf(row[name]):
        return None  # an infinite loss has replay_lost and replay_rest
    tokens = float(sample.masked.to(torch.float64).mean())
    bound = name.startswith("kl") and row["kl_kind"] == "upper"
    extra = {"nats": row[name], "bound": bound}
    return Estimate(row[name] / tokens, row[f"{name}_se"] / tokens, row["n"], extra)


@METRICS.register(
    "replay_kl",
    title="KL per token",
    heading="KL(law ‖ sampler) in nats per token, by replay",
    better=-1,
    limits=(0, None),
    world=None,
    reads=REPLAY,
)
def replay_kl(sample: Sample) -> Estimate | None:
    """Nats per token that exact sequences lose under the sampler; at most, if it is stochastic."""
    return _per_token(sample, "kl")


@METRICS.register(
    "replay_dependence",
    title="dependence",
    heading="Loss to dependence in nats per token, by replay",
    better=-1,
    limits=(0, None),
    world=None,
    reads=REPLAY,
)
def replay_dependence(sample: Sample) -> Estimate | None:
    """Part of the loss: positions drawn together that are not independent (the sampler's)."""
    return _per_token(sample, "dependence")


@METRICS.register(
    "replay_denoiser",
    title="denoiser error",
    heading="Loss to the denoiser in nats per token, by replay",
    better=-1,
    limits=(0, None),
    world=None,
    reads=REPLAY,
)
def replay_denoiser(sample: Sample) -> Estimate | None:
    """Part of the loss: marginals that are not the law's (the model's)."""
    return _per_token(sample, "denoiser")


@METRICS.register(
    "replay_lost",
    title="lost",
    heading="Share of exact sequences that the sampler can never draw, by replay",
    better=-1,
    limits=(0, 1),
    world=None,
    reads=REPLAY,
)
def replay_lost(sample: Sample) -> Estimate | None:
    """Share of exact sequences of which a token is cut off: probability zero under the sampler."""
    row = sample.readings.get(REPLAY)
    if row is None or row.get("kl") is None:
        return None
    return Estimate(row["lost"], sqrt(row["lost"] * (1 - row["lost"]) / row["n"]), row["n"])


@METRICS.register(
    "replay_rest",
    title="KL of the rest",
    heading="KL in nats per token on what the sampler can draw, by replay",
    better=-1,
    world=None,  # no limit: the mean along sampled paths may fall below 0
    reads=REPLAY,
)
def replay_rest(sample: Sample) -> Estimate | None:
    """KL(law given what the sampler can draw ‖ sampler) per token; the KL itself if that is all."""
    row = sample.readings.get(REPLAY)
    infinite = row is not None and row.get("kl") is not None and isinf(row["kl"])
    return _per_token(sample, "kl_rest" if infinite else "kl")


# ---------------------------------------------------------------- uniform laws


@METRICS.register("distinct", title="distinct", limits=(0, None), drawn=False, world=UNIFORM)
def distinct(sample: Sample) -> Estimate | None:
    """Different solutions among the sequences, over the number that exact samples have.

    Of a uniform law over N sequences n samples hold N (1 − (1 − 1/N)^n) different ones.
    """
    number = _solutions(sample)
    if number is None or sample.valid is None:
        return None
    n = len(sample.tokens)
    expected = -number * np.expm1(n * np.log1p(-1 / number)) if number > 1 else 1.0
    different = len(sample.tokens[sample.valid.all(1)].unique(dim=0))
    extra = {"different": different, "expected": float(expected)}
    return Estimate(different / float(expected), float("nan"), n, extra)


@METRICS.register("solution_chi2", title="chi² of solutions", digits=2, drawn=False, world=UNIFORM)
def solution_chi2(sample: Sample) -> Estimate | None:
    """Unevenness of the solutions drawn, chi-square per degree of freedom (1: as exact samples).

    Among the coherent sequences; solutions are pooled until each group expects eight.
    """
    number = _solutions(sample)
    if number is None or number > LISTED or sample.valid is None:
        return None
    known = support_of(sample.world) if sample.world is not None else None
    right = sample.tokens[sample.valid.all(1)]
    if known is None or len(right) < 16:
        return None
    statistic, freedom = goodness_of_fit(right, *known)
    extra = {"p": float(chdtrc(freedom, statistic)), "freedom": freedom}
    return Estimate(statistic / freedom, float("nan"), len(right), extra)


def _solutions(sample: Sample) -> float | None:
    """How many sequences a uniform law has; None for other laws and where something is given."""
    if sample.conditional or not getattr(sample.world, "uniform", False):
        return None
    nats = sample.world.entropy()  # type: ignore[union-attr]
    return None if nats is None else exp(nats)


# ---------------------------------------------------------------- pairs


@METRICS.register("pair_tv", title="pair TV", better=-1, limits=(0, None), world=PAIRED)
def pair_tv(sample: Sample) -> Estimate | None:
    """Total variation of neighbouring pairs against their law, beside what exact samples get."""
    world: Any = sample.world
    if world is None or sample.conditional or not hasattr(world, "pairs"):
        return None
    n = len(sample.tokens)
    truth = pair_law(world)
    counts = _pair_counts(world, sample.tokens, split_groups(n))
    floor, floor_se = pair_floor(world, n, sample.seed)
    value = _tv(counts.sum(0), truth)
    extra = {"floor": floor, "floor_se": floor_se, "excess": value - floor}
    return Estimate(value, _pair_error(counts, truth), n, extra)


def _pair_error(counts: Int64[Tensor, "groups pairs first second"], truth: Tensor) -> float:
    """Standard error of the TV, from balanced halves of the sequences."""
    if len(counts) < 2:
        return float("nan")
    sides = torch.from_numpy(half_splits(len(counts)))
    first, second = (
        np.array([_tv(counts[side == which].sum(0), truth) for side in sides]) for which in (1, -1)
    )
    return half_split_se(first, second)


@lru_cache(maxsize=8)
def pair_law(world: Any) -> Float64[Tensor, "pairs first second"]:
    """The joint law of every pair, from the oracle: p(x_i) p(x_j | x_i)."""
    pairs, vocab = _pairs(world), world.vocab_size
    oracle = world.oracle()
    assert oracle is not None
    blank = torch.full((1, world.length), vocab)
    first = oracle(blank).exp()  # (length, vocab)
    law = torch.zeros((len(pairs), vocab, vocab), dtype=torch.float64)
    for i in pairs[:, 0].unique().tolist():
        values = (first[i] > 0).nonzero()[:, 0]
        canvas = blank.repeat(len(values), 1)
        canvas[:, i] = values
        rest = oracle(canvas).exp().view(len(values), world.length - 1, vocab)
        for k in (pairs[:, 0] == i).nonzero()[:, 0].tolist():
            j = int(pairs[k, 1])
            law[k, values] = first[i, values, None] * rest[:, j - (j > i)]
    return law


@lru_cache(maxsize=32)
def pair_floor(world: Any, n: int, seed: int) -> tuple[float, float]:
    """The mean TV of several sets of `n` exact samples, and its standard error."""
    truth = pair_law(world)
    samples = (world.sample(n, seed, first=FLOOR_IDS + i * n) for i in range(FLOOR_RUNS))
    runs = [_tv(_pair_counts(world, tokens, 1)[0], truth) for tokens in samples]
    return float(np.mean(runs)), standard_error(runs)


def _pairs(world: World) -> Int64[Tensor, "pairs two"]:
    return torch.tensor(world.pairs())  # type: ignore[attr-defined]


def _pair_counts(
    world: World, tokens: Int[Tensor, "count length"], groups: int
) -> Int64[Tensor, "groups pairs first second"]:
    """How often each pair of tokens stands at each pair of positions, in so many groups."""
    pairs, vocab = _pairs(world), world.vocab_size
    code = tokens[:, pairs[:, 0]] * vocab + tokens[:, pairs[:, 1]]  # (count, pairs)
    code = code + torch.arange(len(pairs)) * vocab**2
    group = (torch.arange(len(tokens)) % groups)[:, None] * len(pairs) * vocab**2
    counts = torch.bincount((group + code).flatten(), minlength=groups * len(pairs) * vocab**2)
    return counts.view(groups, len(pairs), vocab, vocab)


def _tv(counts: Tensor, truth: Tensor) -> float:
    """½ Σ |p̂ − p|, averaged over the pairs."""
    total = counts.sum((1, 2), keepdim=True).clamp(min=1)
    return float(0.5 * (counts / total - truth).abs().sum((1, 2)).mean())
